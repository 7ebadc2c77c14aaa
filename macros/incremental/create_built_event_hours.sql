{% macro create_built_event_hours() -%}
create table if not exists {{ built_event_hours() }} (event_hour string, fingerprint string) using parquet
{%- endmacro %}
