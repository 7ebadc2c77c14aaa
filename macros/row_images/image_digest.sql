{% macro image_digest(column_values, present_columns) -%}
case
    when {{ present_columns }} is null
        then xxhash64(transform({{ column_values }}, value -> xxhash64(value)))
    -- A column that the image lacks differs from one that is NULL.
    else xxhash64(
        transform(
            {{ column_values }},
            (value, place) -> if(array_contains({{ present_columns }}, place), xxhash64(value), 0L)
        )
    )
end
{%- endmacro %}
