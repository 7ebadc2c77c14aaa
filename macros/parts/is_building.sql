{% macro is_building() %}
    {#- dbt also compiles the SQL of a model to show it, to document it and to test it; then it may have no table. -#}
    {{ return(execute and flags.WHICH in ['run', 'build'] and model.resource_type == 'model') }}
{% endmacro %}
