{% macro clear_dead_build() %}
    {#- A build that is killed leaves folders that no table owns, and Spark creates no table over them. Embedded Derby
        lets one process in: nobody is writing what it does not know. Behind a Thrift server somebody may be. -#}
    {%- if execute and keeps_build_state() -%}
        {%- if build_state() != 'ended' -%}
            {%- do drop_leftovers() -%}
        {%- endif -%}
        {%- do record_build_state(invocation_id) -%}
    {%- endif -%}
{% endmacro %}
