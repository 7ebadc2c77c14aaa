{% macro keeps_build_state() %}
    {{ return(
        flags.WHICH in ['run', 'build', 'seed']
        and has_embedded_metastore()
        and load_relation(source('binlog', 'row_events')) is not none
    ) }}
{% endmacro %}
