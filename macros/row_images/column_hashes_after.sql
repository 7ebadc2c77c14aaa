{% macro column_hashes_after(before_values, after_values, before_columns, after_columns) -%}
case
    when {{ after_columns }} is null then transform({{ after_values }}, value -> hash(value))
    -- A column that the after image lacks keeps its value from before.
    else transform(
        {{ after_values }},
        (value, place) -> case
            when array_contains({{ after_columns }}, place) then hash(value)
            when {{ before_columns }} is null or array_contains({{ before_columns }}, place)
                then hash({{ before_values }}[place])
        end
    )
end
{%- endmacro %}
