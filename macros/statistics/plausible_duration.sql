{% macro plausible_duration() -%}
(
    transactions.committed_at >= transactions.started_at
    and unix_micros(transactions.committed_at) - unix_micros(transactions.started_at) < 86400000000
)
{%- endmacro %}
