{% macro end_build(results) %}
    {#- A build that failed before it removed the leftovers of a dead build has not begun. -#}
    {%- if execute and keeps_build_state() and build_state() == invocation_id -%}
        {%- do record_build_state('ended', passed_tests(results) if flags.WHICH == 'build') -%}
    {%- endif -%}
{% endmacro %}
