{% macro values_after(before_values, after_values, after_columns) -%}
if(
    {{ after_columns }} is null,
    {{ after_values }},
    transform(
        {{ after_values }},
        (value, place) -> if(array_contains({{ after_columns }}, place), value, {{ before_values }}[place])
    )
)
{%- endmacro %}
