{% macro clear_dead_build() %}
    {#- A killed build leaves folders that no table owns, and Spark creates no table over them. With a metastore of a
        server another client may be writing to these folders, so a person decides. In a home with an embedded
        metastore, binloom's plugin has cleared them before: see binloom/commands/dead_builds.py. -#}
    {%- if execute and var('clear_dead_build') and flags.WHICH in ['run', 'build', 'seed'] -%}
        {%- do drop_leftovers() -%}
    {%- endif -%}
{% endmacro %}
