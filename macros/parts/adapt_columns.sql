{% macro adapt_columns(existing) %}
    {%- set names = adapter.get_columns_in_relation(existing) | map(attribute='name') | sort -%}
    {%- if names != model.columns.values() | map(attribute='name') | sort -%}
        {%- set draft = api.Relation.create(identifier=this.identifier ~ '__dbt_tmp') -%}
        {%- do run_query("create or replace temporary view " ~ draft ~ " as " ~ compiled_code) -%}
        {%- do process_schema_changes(config.get('on_schema_change'), draft, existing) -%}
        {%- do run_query("drop view " ~ draft) -%}
    {%- endif -%}
{% endmacro %}
