{% macro severity_of_test(name) %}
    {#- The severity in force, which includes the user's variable proof_severity. -#}
    {%- set found = [] -%}
    {%- if execute -%}
        {%- for node in graph.nodes.values() if node.resource_type == 'test' and node.name == name -%}
            {%- do found.append(node.config.severity | lower) -%}
        {%- endfor -%}
        {%- if not found -%}
            {%- do exceptions.raise_compiler_error("macro proofs names the test " ~ name ~ ", which does not exist") -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(found[0] if found else 'error') }}
{% endmacro %}
