{% macro in_stale_parts() -%}
true /* only the rows of stale parts */
{%- endmacro %}
