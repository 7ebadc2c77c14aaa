{% macro without_rows() -%}
-- The parent that all rows come from has none, and Spark takes seconds to plan the whole query.
select
    {%- for column in model.columns.values() %}
    cast(null as {{ column.data_type }}) as {{ column.name }}{{ "," if not loop.last }}
    {%- endfor %}
where false
{%- endmacro %}
