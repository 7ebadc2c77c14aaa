{% macro shape(columns) -%}
transform({{ columns }}, col -> struct(lower(col.name) as name, col.data_type, col.is_primary_key))
{%- endmacro %}
