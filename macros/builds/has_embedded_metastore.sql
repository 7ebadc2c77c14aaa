{% macro has_embedded_metastore() %}
    {%- if target.name != 'local' or not env_var('BINLOOM_SPARK_CONF', '') -%}
        {{ return(target.name == 'local') }}
    {%- endif -%}
    {#- The user's own settings may name another metastore. -#}
    {%- set address = run_query("set spark.hadoop.javax.jdo.option.ConnectionURL").rows[0][1] -%}
    {%- set server = run_query("set spark.hadoop.hive.metastore.uris").rows[0][1] -%}
    {{ return(address.startswith('jdbc:derby:') and server == '<undefined>') }}
{% endmacro %}
