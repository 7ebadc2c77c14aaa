{% macro build_state() %}
    {#- A property of a raw table: it is there whatever a command selects. -#}
    {%- set states = [none] -%}
    {%- for row in run_query("show tblproperties " ~ source('binlog', 'segments')).rows -%}
        {%- do states.append(row[1]) if row[0] == 'binloom.build.' ~ target.schema -%}
    {%- endfor -%}
    {{ return(states | last) }}
{% endmacro %}
