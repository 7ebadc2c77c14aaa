{% macro has_rows_left_out(node) %}
    {{ return(recorded(node).get('code') == rows_left_out()) }}
{% endmacro %}
