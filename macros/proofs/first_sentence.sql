{% macro first_sentence(model) %}
    {#- Of the description of a quality model: what a row of it means. -#}
    {%- set texts = [''] -%}
    {%- if execute -%}
        {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model -%}
            {%- do texts.append(node.description.split('. ')[0] | trim) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return((texts | last).rstrip('.') ) }}
{% endmacro %}
