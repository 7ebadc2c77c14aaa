{% macro has_same_rows(table, sql) %}
    {#- The rows are compared with those of the table itself and not with a record of them, because somebody may have
        changed the table. As JSON, because Spark compares no maps; a time in JSON has only milliseconds by default. -#}
    {%- if run_query("select 1 from " ~ table ~ " limit 1").rows | length == 0 -%}
        {#- Most tables of violations. Spark computes no column to find out whether a query has rows. -#}
        {{ return(run_query("select 1 from (" ~ sql ~ ") limit 1").rows | length == 0) }}
    {%- endif -%}
    {%- set options = "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')" -%}
    {%- set row = "to_json(struct(*), " ~ options ~ ")" -%}
    {%- set built = get_select_subquery(sql) if config.get('contract').enforced else sql -%}
    {%- set differences -%}
        select 1
        from (
            select {{ row }} as row, 1 as more from ({{ built }})
            union all
            select {{ row }} as row, -1 as more from {{ table }}
        )
        group by row
        having sum(more) != 0
        limit 1
    {%- endset -%}
    {{ return(run_query(differences).rows | length == 0) }}
{% endmacro %}
