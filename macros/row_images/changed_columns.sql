{% macro changed_columns(
    column_names, before_values, after_values, before_columns, after_columns, undecoded_columns
) -%}
case
    when {{ before_columns }} is null and {{ after_columns }} is null
        then filter(
            {{ column_names }},
            (name, place) -> not {{ before_values }}[place] <=> {{ after_values }}[place]
        )
    else filter(
        {{ column_names }},
        (name, place) -> coalesce(array_contains({{ undecoded_columns }}, place), false)
        or (
            ({{ after_columns }} is null or array_contains({{ after_columns }}, place))
            and (
                not ({{ before_columns }} is null or array_contains({{ before_columns }}, place))
                or not {{ before_values }}[place] <=> {{ after_values }}[place]
            )
        )
    )
end
{%- endmacro %}
