{% macro lean_parquet_options(repeating_columns=[], filtered_columns=[]) %}
    {#- What the Parquet writer of the JVM spends on values that hardly repeat, dictionaries that it gives up and minima
        that nobody filters by, is a fifth of a whole build: both are off but for these. -#}
    {%- set options = {
        "'parquet.enable.dictionary'": 'false',
        "'parquet.column.statistics.enabled'": 'false',
        "'parquet.size.statistics.enabled'": 'false',
        "'parquet.compression.codec.zstd.level'": '1',
    } -%}
    {%- for column in repeating_columns -%}
        {%- do options.update({"'parquet.enable.dictionary#" ~ column ~ "'": 'true'}) -%}
    {%- endfor -%}
    {%- for column in filtered_columns -%}
        {%- do options.update({"'parquet.column.statistics.enabled#" ~ column ~ "'": 'true'}) -%}
    {%- endfor -%}
    {{ return(options) }}
{% endmacro %}
