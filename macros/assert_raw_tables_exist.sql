{% macro assert_raw_tables_exist() %}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set missing = [] -%}
        {%- set nodes = graph.sources.values() | selectattr('source_name', 'equalto', 'binlog') | list -%}
        {%- for node in nodes -%}
            {%- set relation = load_relation(api.Relation.create(schema=node.schema, identifier=node.identifier)) -%}
            {%- set known = [] if relation is none else adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
            {%- do missing.append(node.identifier) if node.columns.keys() | reject('in', known) | list -%}
        {%- endfor -%}
        {%- if missing | length == nodes | length -%}
            {%- do exceptions.raise_compiler_error(
                "there are no tables in schema " ~ nodes[0].schema ~ ": nothing has been landed in this warehouse yet."
                ~ " Land a binlog with `binloom ingest`, or set BINLOOM_HOME to where it was landed."
            ) -%}
        {%- elif missing -%}
            {%- do exceptions.raise_compiler_error(
                "this warehouse was landed by another version of binloom: " ~ missing | join(", ") ~ " of schema "
                ~ nodes[0].schema ~ " lack what this one has. `binloom quality` adds it."
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
