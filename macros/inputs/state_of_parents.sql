{% macro state_of_parents(node) %}
    {#- The state of a table is the id of its last build. That of a view or an ephemeral model is made of the states of
        its parents. A parent that a test only waits for does not matter. -#}
    {%- set states = [] -%}
    {%- set waits_for = node.config.meta.get('waits_for', []) -%}
    {%- for parent in node.depends_on.nodes | reject('in', waits_for) | sort -%}
        {%- if parent in graph.sources -%}
            {%- set raw = shared_notes().raw -%}
            {%- do states.append(raw.get(graph.sources[parent].name, raw.get('segments', invocation_id))) -%}
        {%- elif graph.nodes[parent].resource_type == 'seed' -%}
            {%- do states.append(graph.nodes[parent].checksum.checksum) -%}
        {%- elif graph.nodes[parent].config.materialized == 'ephemeral' -%}
            {%- do states.append(noted_state_of_parents(graph.nodes[parent])) -%}
        {%- elif graph.nodes[parent].config.materialized == 'view' -%}
            {%- do assert_parent_is_whole(graph.nodes[parent]) -%}
            {%- do states.append(recorded(graph.nodes[parent]).get('code') or invocation_id) -%}
            {%- do states.append(noted_state_of_parents(graph.nodes[parent])) -%}
        {%- else -%}
            {%- do assert_parent_is_whole(graph.nodes[parent]) -%}
            {%- do states.append(recorded(graph.nodes[parent]).get('built') or invocation_id) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(local_md5(states | join(' '))) }}
{% endmacro %}
