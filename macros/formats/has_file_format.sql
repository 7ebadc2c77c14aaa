{% macro has_file_format(table) %}
    {#- A table that an older build wrote in another format is written again. -#}
    {%- set formats = {'iceberg': table.is_iceberg, 'delta': table.is_delta} -%}
    {{ return(formats.get(config.get('file_format'), not table.is_iceberg and not table.is_delta)) }}
{% endmacro %}
