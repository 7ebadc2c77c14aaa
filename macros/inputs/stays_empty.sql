{% macro stays_empty(table) %}
    {#- Spark would plan the whole SQL of the model, which may be long, to find no rows. -#}
    {%- set parent = config.get('meta').empty_without -%}
    {%- if not parent -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set rows = "select 1 from (select 1 from " ~ ref(parent) ~ " union all select 1 from " ~ table ~ ") limit 1" -%}
    {{ return(run_query(rows).rows | length == 0) }}
{% endmacro %}
