{% macro assert_rows_may_be_left_out() %}
    {%- if execute and leaves_rows_out() and target.name != 'local' -%}
        {%- for node in graph.nodes.values()
            if node.package_name == 'binloom' and node.resource_type == 'model'
            and node.unique_id in selected_resources -%}
            {%- do exceptions.raise_compiler_error(
                "with --empty or --sample, the tables of binloom would lack rows, and commands that ask this cluster could"
                ~ " not see that. Use these options with target local."
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
