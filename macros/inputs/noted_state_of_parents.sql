{% macro noted_state_of_parents(node) %}
    {#- When a child of the node is built, nothing that the node is made of is built any more. -#}
    {%- set states = shared_notes().states -%}
    {%- if node.unique_id not in states -%}
        {%- do states.update({node.unique_id: state_of_parents(node)}) -%}
    {%- endif -%}
    {{ return(states[node.unique_id]) }}
{% endmacro %}
