{% macro empty_table(table) -%}
    {#- Delta has no TRUNCATE. For the others, deleting all rows is as cheap. -#}
    {{ "truncate table " if is_parquet() else "delete from " }}{{ table }}
{%- endmacro %}
