{% macro lean_parquet_options(repeating_columns=[], filtered_columns=[]) %}
    {#- Dictionaries that the JVM's Parquet writer gives up, because values hardly repeat, and statistics that no query
        filters by take a fifth of a whole build. Both are off except for these columns. -#}
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
