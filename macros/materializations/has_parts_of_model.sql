{% macro has_parts_of_model(table, built) %}
    {#- A table of an older version has other partitions, or no record of them. -#}
    {%- if table is none or table.is_view or load_cached_relation(built) is none -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set columns = modules.re.findall('Partition Columns: \\[(.*)\\]', table.information or '') | join -%}
    {{ return(columns | replace('`', '') == config.get('partition_by') | join(', ')) }}
{% endmacro %}
