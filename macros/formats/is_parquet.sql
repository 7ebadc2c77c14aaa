{% macro is_parquet() %}
    {{ return(config.get('file_format', 'parquet') == 'parquet') }}
{% endmacro %}
