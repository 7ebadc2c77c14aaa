{% macro redefined_column(definition, column) -%}
{#- A primary key stays on a column that is defined anew, and keeps it NOT NULL. -#}
{{ column_struct(definition, {
    'is_nullable': definition ~ '.is_nullable and not ' ~ column ~ '.is_primary_key',
    'is_primary_key': column ~ '.is_primary_key',
}) }}
{%- endmacro %}
