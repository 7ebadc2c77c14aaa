{% macro load_unselected_seeds() %}
    {#- `dbt run` and a selection of models need seeds that they do not load. Seeds that are missing, incomplete or from
        another version of their file are loaded here. -#}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set stale = [] -%}
        {%- for node in graph.nodes.values()
            if node.resource_type == 'seed' and node.package_name == 'binloom' and node.unique_id not in selected_resources -%}
            {%- set table = load_relation(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
            {%- set checksums = [] -%}
            {%- if table is not none -%}
                {%- for row in run_query("show tblproperties " ~ table).rows if row[0] == 'binloom.checksum' -%}
                    {%- do checksums.append(row[1]) -%}
                {%- endfor -%}
            {%- endif -%}
            {%- do stale.append(node) if node.checksum.checksum not in checksums -%}
        {%- endfor -%}
        {%- if stale and target.name != 'local' -%}
            {#- The server may run on a machine without the file. -#}
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
