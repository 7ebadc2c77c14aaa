{% macro gtid_range_text(stem, low, high) -%}
concat({{ stem }}, {{ low }}, if({{ high }} > {{ low }}, concat('-', {{ high }}), ''))
{%- endmacro %}
