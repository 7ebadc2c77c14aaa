{% macro adapt_columns(table, sql) %}
    {%- set draft = api.Relation.create(identifier=this.identifier ~ '__dbt_tmp') -%}
    {%- do run_query("create or replace temporary view " ~ draft ~ " as " ~ sql) -%}
    {%- do process_schema_changes(config.get('on_schema_change'), draft, table) -%}
    {%- do run_query("drop view " ~ draft) -%}
{% endmacro %}
