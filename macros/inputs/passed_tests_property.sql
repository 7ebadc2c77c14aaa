{% macro passed_tests_property() -%}
binloom.passed.{{ target.schema }}
{%- endmacro %}
