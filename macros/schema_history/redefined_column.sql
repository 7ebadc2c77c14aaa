{% macro redefined_column(definition, column) -%}
{#- A redefined primary key column stays in the key, and the key keeps it NOT NULL. -#}
{{ column_struct(definition, {
    'is_nullable': definition ~ '.is_nullable and not ' ~ column ~ '.is_primary_key',
    'is_primary_key': column ~ '.is_primary_key',
}) }}
{%- endmacro %}
