{% macro without_rows() -%}
select
    {%- for column in model.columns.values() %}
    cast(null as {{ column.data_type }}) as {{ column.name }}{{ "," if not loop.last }}
    {%- endfor %}
where false
{%- endmacro %}
