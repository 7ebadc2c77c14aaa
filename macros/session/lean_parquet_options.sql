{% macro lean_parquet_options(repeating_columns=[], filtered_columns=[], looked_up_columns=[]) %}
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
    {#- A bloom filter tells that a row group lacks a value. The writer chooses its size by the number of values. -#}
    {%- for column in looked_up_columns -%}
        {%- do options.update({
            "'parquet.bloom.filter.enabled#" ~ column ~ "'": 'true',
            "'parquet.bloom.filter.adaptive.enabled'": 'true',
            "'parquet.bloom.filter.candidates.number#" ~ column ~ "'": '9',
        }) -%}
    {%- endfor -%}
    {{ return(options) }}
{% endmacro %}
