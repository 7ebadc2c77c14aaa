{% macro assert_file_format_is_known() %}
    {%- set known = ['parquet', 'iceberg', 'delta'] -%}
    {%- set chosen = env_var('BINLOOM_FILE_FORMAT', 'parquet') -%}
    {%- if chosen not in known -%}
        {%- do exceptions.raise_compiler_error(
            "BINLOOM_FILE_FORMAT is '" ~ chosen ~ "', but tables can only be in the formats " ~ known | join(', ')
            ~ ". Set one of these, or unset the variable."
        ) -%}
    {%- endif -%}
{% endmacro %}
