{% macro drop_parts(table, parts) %}
    {%- set dropped = parts | list -%}
    {%- if dropped -%}
        {%- do run_query(drop_parts_statement(table, dropped)) -%}
    {%- endif -%}
{% endmacro %}
