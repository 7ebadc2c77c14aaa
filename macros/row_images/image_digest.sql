{% macro image_digest(column_values, present_columns) -%}
{#- A column that the image lacks differs from one that is NULL. -#}
{%- set known_values -%}
transform(
    {{ column_values }},
    (value, place) -> if(array_contains({{ present_columns }}, place), value, '\u0000missing\u0000')
)
{%- endset -%}
{#- The hash of an array leaves out each NULL, and the joined text shows where they are. To hash each value alone takes
    half as long again. -#}
case
    when {{ present_columns }} is null
        then xxhash64({{ column_values }}, array_join({{ column_values }}, '', '\u0000null\u0000'))
    else xxhash64({{ known_values }}, array_join({{ known_values }}, '', '\u0000null\u0000'))
end
{%- endmacro %}
