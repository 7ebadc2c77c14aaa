{% macro code_of_parents(node) %}
    {#- The SQL of an ephemeral model is in that of its children. -#}
    {%- set codes = [] -%}
    {%- for parent in node.depends_on.nodes | sort -%}
        {%- if parent in graph.sources -%}
            {%- do codes.append(graph.sources[parent].columns.keys() | join(' ')) -%}
        {%- elif graph.nodes[parent].resource_type == 'seed' -%}
            {%- do codes.append(tojson(graph.nodes[parent].config.column_types)) -%}
        {%- elif graph.nodes[parent].config.materialized == 'ephemeral' -%}
            {%- do codes.append(code_of_parents(graph.nodes[parent])) -%}
        {%- else -%}
            {%- do codes.append(recorded(graph.nodes[parent]).get('code') or invocation_id) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(local_md5(codes | join(' '))) }}
{% endmacro %}
