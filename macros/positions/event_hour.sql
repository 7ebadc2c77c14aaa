{% macro event_hour(event_timestamp) -%}
date_format({{ event_timestamp }}, 'yyyy-MM-dd-HH')
{%- endmacro %}
