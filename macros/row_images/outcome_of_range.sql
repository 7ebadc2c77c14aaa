{% macro outcome_of_range(event, ranges) -%}
get(
    filter(
        {{ ranges }},
        one -> struct({{ event }}.start_pos, {{ event }}.payload_ordinal) >= struct(one.start_pos, one.start_ordinal)
        and struct({{ event }}.start_pos, {{ event }}.payload_ordinal) < struct(one.end_pos, one.end_ordinal)
    ),
    0
).outcome
{%- endmacro %}
