{% macro spark__tblproperties_clause() -%}
    {#- A table and its record are made in one step, so that a killed build leaves no table with a wrong record. The record
        of an incremental model also needs that of its parts. -#}
    {%- set known = recorded(model) -%}
    {%- if known and config.get('materialized') != 'incremental' -%}
        {{ tblproperties_of(known) }}
    {%- endif -%}
{%- endmacro %}
