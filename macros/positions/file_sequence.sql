{% macro file_sequence(binlog_file) -%}
coalesce(try_cast(regexp_extract({{ binlog_file }}, '([0-9]+)$', 1) as bigint), 0)
{%- endmacro %}
