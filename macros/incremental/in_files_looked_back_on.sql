{% macro in_files_looked_back_on() -%}
true /* only the rows of files with stale parts, and of the files before them */
{%- endmacro %}
