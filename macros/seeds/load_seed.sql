{% macro load_seed(node) %}
    {%- set table = api.Relation.create(schema=node.schema, identifier=node.alias, type='table') -%}
    {%- set columns = [] -%}
    {#- What dbt has parsed before may name the folder of another copy of the project. -#}
    {%- set project = adapter.config.project_root -%}
    {%- if node.package_name != adapter.config.project_name -%}
        {%- set packages = adapter.config.packages_install_path -%}
        {%- set packages = packages if packages.startswith('/') else project ~ '/' ~ packages -%}
        {%- set project = packages ~ '/' ~ node.package_name -%}
    {%- endif -%}
    {%- for name, type in node.config.column_types.items() -%}
        {%- do columns.append("cast(" ~ name ~ " as " ~ type ~ ") as " ~ name) -%}
    {%- endfor -%}
    {%- do adapter.create_schema(table) -%}
    {%- do run_query(
        "create or replace temporary view seed_file using csv options (path "
        ~ text_literal(project ~ '/' ~ node.original_file_path) ~ ", header 'true', escape '\"')"
    ) -%}
    {%- do run_query("drop table if exists " ~ table) -%}
    {%- do run_query(
        "create table " ~ table ~ " using " ~ node.config.file_format ~ " tblproperties ('binloom.checksum' = '"
        ~ node.checksum.checksum ~ "') as select " ~ columns | join(', ') ~ " from seed_file"
    ) -%}
    {%- do run_query("drop view seed_file") -%}
{% endmacro %}
