{% macro recorded(node) %}
    {#- dbt has read the properties of all tables and views before the first node is built. -#}
    {%- set known = shared_notes().recorded -%}
    {%- if node.unique_id not in known -%}
        {%- set relation = load_cached_relation(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
        {%- set found = {} -%}
        {%- if relation is not none and (relation.is_iceberg or relation.is_delta) -%}
            {#- Their catalogs keep properties outside the metastore. -#}
            {%- for row in run_query("show tblproperties " ~ relation).rows if row[0].startswith('binloom.') -%}
                {%- do found.update({row[0].removeprefix('binloom.'): row[1]}) -%}
            {%- endfor -%}
        {%- elif relation is not none -%}
            {%- for name, value in modules.re.findall('binloom\\.(\\w+)=(\\w+)', relation.information or '') -%}
                {%- do found.update({name: value}) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do known.update({node.unique_id: found}) -%}
    {%- endif -%}
    {{ return(known[node.unique_id]) }}
{% endmacro %}
