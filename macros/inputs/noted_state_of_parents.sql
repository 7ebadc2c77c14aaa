{% macro noted_state_of_parents(node) %}
    {#- All parents of the node are built before its children, so the state is cached. -#}
    {%- set states = shared_notes().states -%}
    {%- if node.unique_id not in states -%}
        {%- do states.update({node.unique_id: state_of_parents(node)}) -%}
    {%- endif -%}
    {{ return(states[node.unique_id]) }}
{% endmacro %}
