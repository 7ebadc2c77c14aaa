{% macro built_tables() %}
    {#- Schemas that do not exist have no folder. -#}
    {%- set places = {} -%}
    {%- for row in run_query("show schemas").rows -%}
        {%- do places.update({row[0]: none}) -%}
    {%- endfor -%}
    {%- set tables = [] -%}
    {%- for node in graph.nodes.values()
        if node.resource_type in ['model', 'seed'] and node.config.materialized not in ['view', 'ephemeral']
        and node.schema in places -%}
        {%- if places[node.schema] is none -%}
            {%- for row in run_query("describe schema " ~ node.schema).rows if row[0] == 'Location' -%}
                {%- do places.update({node.schema: row[1]}) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- set relation = api.Relation.create(schema=node.schema, identifier=node.alias, type='table') -%}
        {%- do tables.append({
            'relation': relation,
            'exists': load_relation(relation) is not none,
            'schema_folder': places[node.schema],
            'folder': places[node.schema] ~ '/' ~ node.alias,
            'is_partitioned': node.config.get('partition_by') is not none,
        }) -%}
    {%- endfor -%}
    {{ return(tables) }}
{% endmacro %}
