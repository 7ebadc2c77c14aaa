{% macro end_build() %}
    {#- A build that failed before it had cleared what was left has not begun. -#}
    {%- if execute and keeps_build_state() and build_state() == invocation_id -%}
        {%- do record_build_state('ended') -%}
    {%- endif -%}
{% endmacro %}
