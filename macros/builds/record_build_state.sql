{% macro record_build_state(state) %}
    {%- do run_query(
        "alter table " ~ source('binlog', 'row_events').render() ~ " set tblproperties ('binloom.build." ~ target.schema
        ~ "' = '" ~ state ~ "')"
    ) -%}
{% endmacro %}
