{% macro same_segment(left, right) -%}
{{ left }}.source_id = {{ right }}.source_id
and {{ left }}.epoch = {{ right }}.epoch
and {{ left }}.binlog_file = {{ right }}.binlog_file
and {{ left }}.segment_start = {{ right }}.segment_start
{%- endmacro %}
