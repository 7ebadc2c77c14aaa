{% macro replace_parts(sql) %}
    {%- set columns = adapter.get_columns_in_relation(this) | map(attribute='name') | join(', ') -%}
    insert overwrite table {{ this }} partition ({{ config.get('partition_by') | join(', ') }})
    select {{ columns }} from (
        {{ sql }}
    )
{% endmacro %}
