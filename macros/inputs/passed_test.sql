{% macro passed_test(unique_id, inputs) %}
    {#- Short, because the metastore keeps all of them in one text. -#}
    {{ return(local_md5(unique_id)[:6] ~ inputs[:10]) }}
{% endmacro %}
