{% macro spark__options_clause() -%}
    {%- if is_parquet() -%}
        {{ dbt.spark__options_clause() }}
    {%- endif -%}
{%- endmacro %}
