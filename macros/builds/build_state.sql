{% macro build_state() %}
    {#- The state is a property of a raw table, because that table exists whatever a command selects. A change of a
        property lets Spark list the files again, so it is not a table of states: see register_listed_segments. -#}
    {%- set states = [none] -%}
    {%- for row in run_query("show tblproperties " ~ source('binlog', 'row_events').render()).rows -%}
        {%- do states.append(row[1]) if row[0] == 'binloom.build.' ~ target.schema -%}
    {%- endfor -%}
    {{ return(states | last) }}
{% endmacro %}
