{% macro row_image(column_names, column_values, present_columns) -%}
case
    when {{ present_columns }} is null then map_from_arrays({{ column_names }}, {{ column_values }})
    else map_from_arrays(
        transform({{ present_columns }}, place -> {{ column_names }}[place]),
        transform({{ present_columns }}, place -> {{ column_values }}[place])
    )
end
{%- endmacro %}
