{% macro record_built_event_hours() -%}
insert overwrite table {{ built_event_hours() }} select event_hour, fingerprint from {{ ref('int_event_hours') }}
{%- endmacro %}
