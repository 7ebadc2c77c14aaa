{% macro has_parts_of_model(table, built) %}
    {#- A table of an older version has other columns or partitions, or no record of them. -#}
    {%- if table is none or table.is_view or load_cached_relation(built) is none or not has_file_format(table) -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set found = adapter.get_columns_in_relation(table) | map(attribute='name') | sort -%}
    {%- set keeps_columns = config.get('on_schema_change') == 'fail' -%}
    {%- if keeps_columns and found != model.columns.values() | map(attribute='name') | sort -%}
        {{ return(false) }}
    {%- elif is_parquet() -%}
        {%- set columns = modules.re.findall('Partition Columns: \\[(.*)\\]', table.information or '') | join -%}
        {{ return(columns | replace('`', '') == config.get('partition_by') | join(', ')) }}
    {%- endif -%}
    {#- Catalogs describe the partitions of other formats in several ways. The record has a column for each. -#}
    {%- set recorded = adapter.get_columns_in_relation(built) | map(attribute='name') | reject('eq', 'fingerprint') -%}
    {{ return(recorded | list == config.get('partition_by')) }}
{% endmacro %}
