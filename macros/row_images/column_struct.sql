{% macro column_struct(column, changes) -%}
named_struct(
    {%- for field in ['name', 'data_type', 'column_type', 'character_set', 'is_nullable', 'is_primary_key'] %}
    '{{ field }}', {{ changes.get(field, column ~ '.' ~ field) }}{{ ',' if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}
