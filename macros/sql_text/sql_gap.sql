{% macro sql_gap() -%}
(?:\s++|/\*(?!M?!)(?s:.*?)\*/|#[^\n]*\n|--\s[^\n]*\n)
{%- endmacro %}
