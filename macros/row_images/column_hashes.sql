{% macro column_hashes(column_values, present_columns) -%}
case
    when {{ present_columns }} is null then transform({{ column_values }}, value -> hash(value))
    else transform(
        {{ column_values }},
        (value, place) -> if(array_contains({{ present_columns }}, place), hash(value), null)
    )
end
{%- endmacro %}
