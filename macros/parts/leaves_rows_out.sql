{% macro leaves_rows_out() %}
    {#- With these options, dbt gives a model none or only some of the rows of its parents. -#}
    {{ return(flags.EMPTY or invocation_args_dict.get('sample') is not none) }}
{% endmacro %}
