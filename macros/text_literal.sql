{% macro text_literal(text) -%}
'{{ text | replace("\\", "\\\\") | replace("'", "\\'") }}'
{%- endmacro %}
