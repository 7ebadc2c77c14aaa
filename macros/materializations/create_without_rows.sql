{% macro create_without_rows(existing) %}
    {%- set table = this.incorporate(type='table') -%}
    {{ run_hooks(pre_hooks) }}
    {%- if existing is not none and is_parquet() -%}
        {%- do adapter.drop_relation(existing) -%}
    {%- endif -%}
    {%- call statement('main') -%}
        {{ create_table_as(False, table, without_rows()) }}
    {%- endcall -%}
    {%- do persist_docs(table, model) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [table]}) }}
{% endmacro %}
