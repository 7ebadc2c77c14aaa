{% macro record_build_state(state, passed=none) %}
    {%- set properties = ["'binloom.build." ~ target.schema ~ "' = '" ~ state ~ "'"] -%}
    {%- if passed is not none -%}
        {%- do properties.append("'" ~ passed_tests_property() ~ "' = '" ~ passed ~ "'") -%}
    {%- endif -%}
    {%- do run_query(
        "alter table " ~ source('binlog', 'row_events').render() ~ " set tblproperties (" ~ properties | join(', ') ~ ")"
    ) -%}
{% endmacro %}
