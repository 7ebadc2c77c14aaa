{% macro spark__get_assert_columns_equivalent(sql) %}
    {#- The columns follow from the SQL and the contract. `binloom build` knows when both are those of its last good
        build; Spark would plan each query once more. -#}
    {%- if not env_var('BINLOOM_CONTRACTS_HOLD', '') -%}
        {{ return(dbt.default__get_assert_columns_equivalent(sql)) }}
    {%- endif -%}
{% endmacro %}
