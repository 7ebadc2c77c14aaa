{% macro forget_parts(built) %}
    {#- Runs before the table is dropped: a rebuild that is cut short must not be taken for the table in the record. -#}
    {%- set types = {'epoch': 'int', 'file_part': 'int'} -%}
    {%- set columns = [] -%}
    {%- for column in config.get('partition_by') -%}
        {%- do columns.append(column ~ " " ~ types.get(column, 'string')) -%}
    {%- endfor -%}
    {%- set record = load_cached_relation(built) -%}
    {%- if record is not none and not has_file_format(record) -%}
        {%- do run_query("drop table " ~ built) -%}
    {%- endif -%}
    {%- do run_query(
        "create table if not exists " ~ built ~ " (" ~ columns | join(', ') ~ ", fingerprint string) using "
        ~ config.get('file_format', 'parquet')
    ) -%}
    {%- do note_whole(built, false) -%}
    {%- do run_query(empty_table(built)) -%}
    {#- Records of earlier versions. -#}
    {%- for name in ['_built_hours', '_built_files'] -%}
        {%- do run_query("drop table if exists " ~ built | string | replace('_built_parts', name)) -%}
    {%- endfor -%}
{% endmacro %}
