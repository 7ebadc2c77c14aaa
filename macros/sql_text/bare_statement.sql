{% macro bare_statement(sql_text) -%}
trim(
    regexp_replace(
        regexp_replace({{ sql_text }}, r'^{{ sql_gap() }}+', ''),
        r'/\*M?![0-9]*((?s:.*?))\*/',
        ' $1 '
    )
)
{%- endmacro %}
