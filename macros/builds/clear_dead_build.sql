{% macro clear_dead_build() %}
    {#- A killed build leaves folders that no table owns, and Spark creates no table over them. Embedded Derby admits
        one process, so no other process can be writing to these folders. With a metastore of a server another client
        may be, so a person decides. -#}
    {%- if execute and keeps_build_state() -%}
        {#- Iceberg and Delta publish a table or its parts in one step. They leave only files outside of all tables. -#}
        {%- if build_state() != 'ended' and env_var('BINLOOM_FILE_FORMAT', 'parquet') == 'parquet' -%}
            {%- do drop_leftovers() -%}
        {%- endif -%}
        {%- do record_build_state(invocation_id) -%}
    {%- elif execute and var('clear_dead_build') and flags.WHICH in ['run', 'build', 'seed'] -%}
        {%- do drop_leftovers() -%}
    {%- endif -%}
{% endmacro %}
