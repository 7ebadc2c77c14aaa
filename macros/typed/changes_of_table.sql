{% macro changes_of_table(table, former_names) -%}
select
    {%- if former_names %}
    * except (row_before, row_after, changed_columns, undecoded_columns),
    {{ binloom.with_present_names('row_before', former_names) }} as row_before,
    {{ binloom.with_present_names('row_after', former_names) }} as row_after,
    {{ binloom.with_present_names('changed_columns', former_names, is_list=true) }} as changed_columns,
    {{ binloom.with_present_names('undecoded_columns', former_names, is_list=true) }} as undecoded_columns
    {%- else %}
    *
    {%- endif %}
from {{ ref('row_changes') }}
where
    source_id = {{ binloom.text_literal(table.source) }}
    and schema_name = {{ binloom.text_literal(table.schema) }}
    and table_name = {{ binloom.text_literal(table.name) }}
{%- endmacro %}
