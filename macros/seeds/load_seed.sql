{% macro load_seed(node) %}
    {%- set table = api.Relation.create(schema=node.schema, identifier=node.alias, type='table') -%}
    {%- set columns = [] -%}
    {%- for name, type in node.config.column_types.items() -%}
        {%- do columns.append("cast(" ~ name ~ " as " ~ type ~ ") as " ~ name) -%}
    {%- endfor -%}
    {%- do adapter.create_schema(table) -%}
    {%- do run_query(
        "create or replace temporary view seed_file using csv options (path "
        ~ text_literal(node.root_path ~ '/' ~ node.original_file_path) ~ ", header 'true', escape '\"')"
    ) -%}
    {%- do run_query("drop table if exists " ~ table) -%}
    {%- do run_query(
        "create table " ~ table ~ " using " ~ node.config.file_format ~ " tblproperties ('binloom.checksum' = '"
        ~ node.checksum.checksum ~ "') as select " ~ columns | join(', ') ~ " from seed_file"
    ) -%}
    {%- do run_query("drop view seed_file") -%}
{% endmacro %}
