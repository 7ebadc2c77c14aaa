{% macro create_built_files() -%}
create table if not exists {{ built_files() }} (source_id string, epoch int, binlog_file string, fingerprint string)
using parquet
{%- endmacro %}
