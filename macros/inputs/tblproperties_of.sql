{% macro tblproperties_of(record, others={}) -%}
    {%- set properties = dict(others) -%}
    {%- for name, value in record.items() -%}
        {%- do properties.update({'binloom.' ~ name: value}) -%}
    {%- endfor -%}
tblproperties (
    {%- for name, value in properties.items() -%}
'{{ name }}' = '{{ value }}'{{ ", " if not loop.last }}
    {%- endfor -%}
)
{%- endmacro %}
