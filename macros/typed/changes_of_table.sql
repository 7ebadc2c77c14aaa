{% macro changes_of_table(table, former_names, former_tables=[]) -%}
{%- set replaced = (['row_before', 'row_after', 'changed_columns', 'undecoded_columns'] if former_names else [])
    + (['schema_name', 'table_name'] if former_tables else []) -%}
select
    {%- if replaced %}
    * except ({{ replaced | join(', ') }})
    {%- if former_names %},
    {{ binloom.with_present_names('row_before', former_names) }} as row_before,
    {{ binloom.with_present_names('row_after', former_names) }} as row_after,
    {{ binloom.with_present_names('changed_columns', former_names, is_list=true) }} as changed_columns,
    {{ binloom.with_present_names('undecoded_columns', former_names, is_list=true) }} as undecoded_columns
    {%- endif %}
    {%- if former_tables %},
    {{ binloom.text_literal(table.schema) }} as schema_name,
    {{ binloom.text_literal(table.name) }} as table_name
    {%- endif %}
    {%- else %}
    *
    {%- endif %}
from {{ ref('row_changes') }}
where
    {{ binloom.is_of_table(table, former_tables) }}
{%- endmacro %}
