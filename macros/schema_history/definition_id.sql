{% macro definition_id(columns, relation='') -%}
{%- set of = relation ~ '.' if relation else '' -%}
md5(to_json(struct({{ of }}source_id, {{ of }}schema_name, {{ of }}table_name, {{ columns }} as columns)))
{%- endmacro %}
