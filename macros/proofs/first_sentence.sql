{% macro first_sentence(model) %}
    {#- The first sentence of a quality model's description says what one of its rows is. -#}
    {%- set texts = [''] -%}
    {%- if execute -%}
        {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model -%}
            {%- do texts.append(node.description.split('. ')[0] | trim) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return((texts | last).rstrip('.') ) }}
{% endmacro %}
