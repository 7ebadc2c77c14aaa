{% macro gets_no_rows() %}
    {%- set parent = config.get('meta').empty_without -%}
    {{ return(parent and run_query("select 1 from " ~ ref(parent) ~ " limit 1").rows | length == 0) }}
{% endmacro %}
