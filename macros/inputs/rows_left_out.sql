{% macro rows_left_out() %}
    {{ return('rows_left_out') }}
{% endmacro %}
