{% macro build_state() %}
    {#- The state is a property of a raw table, because that table exists whatever a command selects. -#}
    {%- set states = [none] -%}
    {%- for row in run_query("show tblproperties " ~ source('binlog', 'segments')).rows -%}
        {%- do states.append(row[1]) if row[0] == 'binloom.build.' ~ target.schema -%}
    {%- endfor -%}
    {{ return(states | last) }}
{% endmacro %}
