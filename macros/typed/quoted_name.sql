{% macro quoted_name(name) -%}
`{{ name | replace('`', '``') }}`
{%- endmacro %}
