{% macro spark__tblproperties_clause() -%}
    {#- A table and its record are made in one step, so that a killed build leaves no table with a wrong record. The record
        of an incremental model also needs that of its parts. -#}
    {%- set record = {} if config.get('materialized') == 'incremental' else recorded(model) -%}
    {%- set others = {} if config.get('materialized') == 'view' else format_properties() -%}
    {%- if record or others -%}
        {{ tblproperties_of(record, others) }}
    {%- endif -%}
{%- endmacro %}
