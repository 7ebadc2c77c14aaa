{% macro seed_checksum(node) %}
    {%- set found = [none] -%}
    {%- set table = load_relation(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
    {%- if table is not none -%}
        {%- for row in run_query("show tblproperties " ~ table).rows -%}
            {%- do found.append(row[1]) if row[0] == 'binloom.checksum' -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(found | last) }}
{% endmacro %}
