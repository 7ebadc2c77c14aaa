{% macro transactions_hint(alias) -%}
/* {{ alias }}: broadcast if they are few */
{%- endmacro %}
