{% macro record_build_state(state) %}
    {%- do run_query(
        "alter table " ~ source('binlog', 'segments') ~ " set tblproperties ('binloom.build." ~ target.schema ~ "' = '"
        ~ state ~ "')"
    ) -%}
{% endmacro %}
