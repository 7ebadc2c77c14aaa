{% macro adapt_columns(existing) %}
    {#- The table of the last good build has the columns of the same project: see spark__get_assert_columns_equivalent.
        Otherwise dbt compares names and types, as for its own incremental models. -#}
    {%- if not env_var('BINLOOM_CONTRACTS_HOLD', '') -%}
        {%- set draft = api.Relation.create(identifier=this.identifier ~ '__dbt_tmp') -%}
        {%- do run_query("create or replace temporary view " ~ draft ~ " as " ~ compiled_code) -%}
        {%- do process_schema_changes(config.get('on_schema_change'), draft, existing) -%}
        {%- do run_query("drop view " ~ draft) -%}
    {%- endif -%}
{% endmacro %}
