{% macro tblproperties_of(record) -%}
tblproperties (
    {%- for name, value in record.items() -%}
'binloom.{{ name }}' = '{{ value }}'{{ ", " if not loop.last }}
    {%- endfor -%}
)
{%- endmacro %}
