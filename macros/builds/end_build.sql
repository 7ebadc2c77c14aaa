{% macro end_build() %}
    {#- A build that failed before it removed the leftovers of a dead build has not begun. -#}
    {%- if execute and keeps_build_state() and build_state() == invocation_id -%}
        {%- do record_build_state('ended') -%}
    {%- endif -%}
{% endmacro %}
