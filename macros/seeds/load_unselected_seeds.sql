{% macro load_unselected_seeds() %}
    {#- `dbt run` and a selection of models need seeds that they leave out: those that are missing, cut short or of
        another version of their file are loaded from it. -#}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set stale = [] -%}
        {%- for node in graph.nodes.values()
            if node.resource_type == 'seed' and node.unique_id not in selected_resources -%}
            {%- if seed_checksum(node) != node.checksum.checksum -%}
                {%- do stale.append(node) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if stale and target.name != 'local' -%}
            {#- The server may run where the file is not. -#}
            {%- do exceptions.raise_compiler_error(
                "the seeds " ~ stale | map(attribute='name') | sort | join(", ") ~ " are not loaded, or not those of this"
                ~ " version. Run `dbt seed`, then this command again."
            ) -%}
        {%- endif -%}
        {%- for node in stale -%}
            {%- do load_seed(node) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
