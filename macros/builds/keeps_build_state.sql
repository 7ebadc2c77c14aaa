{% macro keeps_build_state() %}
    {{ return(
        target.name == 'local'
        and flags.WHICH in ['run', 'build', 'seed']
        and load_relation(source('binlog', 'segments')) is not none
    ) }}
{% endmacro %}
