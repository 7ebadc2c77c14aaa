{% macro in_stale_files() -%}
true /* only the rows of files with stale parts */
{%- endmacro %}
