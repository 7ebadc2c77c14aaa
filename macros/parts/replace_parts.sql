{% macro replace_parts(sql) %}
    {#- The catalogs of Iceberg and Delta take no clause for the partitions. The mode DYNAMIC of the session makes all
        three formats replace exactly the partitions that the query returns. -#}
    {%- set columns = adapter.get_columns_in_relation(this) | map(attribute='name') | join(', ') -%}
    {%- set clause = " partition (" ~ config.get('partition_by') | join(', ') ~ ")" if is_parquet() else "" -%}
    insert overwrite table {{ this }}{{ clause }}
    select {{ columns }} from (
        {{ sql }}
    )
{% endmacro %}
