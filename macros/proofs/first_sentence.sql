{% macro first_sentence(name) %}
    {#- The first sentence of a quality model's description says what one of its rows is; that of a test, what one of
        the rows is that the test selects. -#}
    {%- set texts = [''] -%}
    {%- if execute -%}
        {%- for node in graph.nodes.values() if node.resource_type in ('model', 'test') and node.name == name -%}
            {%- do texts.append(node.description.split('. ')[0] | trim) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return((texts | last).rstrip('.') ) }}
{% endmacro %}
