{% macro escaped_key_value(value) -%}
replace(replace({{ value }}, '\\', '\\\\'), '|', '\\|')
{%- endmacro %}
