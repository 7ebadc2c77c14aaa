{% macro whole_image() -%}
{#- MINIMAL and NOBLOB images lack values; those before the change are still valid after it. -#}
map_concat(
    map_filter(
        coalesce(row_before, cast(map() as map<string, string>)),
        (name, text) ->
            not map_contains_key(row_after, name) and not coalesce(array_contains(undecoded_columns, name), false)
    ),
    row_after
)
{%- endmacro %}
