{% macro spark__tblproperties_clause() -%}
    {%- set properties = [] -%}
    {%- for name, value in format_properties().items() -%}
        {%- do properties.append("'" ~ name ~ "' = '" ~ value ~ "'") -%}
    {%- endfor -%}
    {%- if properties -%}
tblproperties ({{ properties | join(', ') }})
    {%- endif -%}
{%- endmacro %}
