{% macro in_hours(hours, event_timestamp='event_timestamp') -%}
    {%- if hours is none -%}
true
    {%- elif not hours -%}
false
    {%- else -%}
        {%- if event_timestamp is not none -%}
{#- The range lets the reader skip whole row groups; the list is exact. -#}
{{ event_timestamp }} >= to_timestamp({{ text_literal(hours | min) }}, 'yyyy-MM-dd-HH')
    and {{ event_timestamp }} < to_timestamp({{ text_literal(hours | max) }}, 'yyyy-MM-dd-HH') + interval 1 hour
    and {% endif -%}
event_hour in (
        {%- for hour in hours %}{{ text_literal(hour) }}{% if not loop.last %}, {% endif %}{% endfor -%}
    )
    {%- endif -%}
{%- endmacro %}
