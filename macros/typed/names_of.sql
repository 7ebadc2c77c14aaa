{% macro names_of(columns) -%}
array({% for name in columns %}{{ binloom.text_literal(name) }}{{ ',' if not loop.last }}{% endfor %})
{%- endmacro %}
