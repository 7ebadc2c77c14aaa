{% macro clear_dead_build() %}
    {#- A killed build leaves folders that no table owns, and Spark creates no table over them. Embedded Derby admits
        one process, so no other process can be writing to these folders. With a Thrift server another client may be.
        -#}
    {%- if execute and keeps_build_state() -%}
        {%- if build_state() != 'ended' -%}
            {%- do drop_leftovers() -%}
        {%- endif -%}
        {%- do record_build_state(invocation_id) -%}
    {%- endif -%}
{% endmacro %}
