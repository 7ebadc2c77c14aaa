{% macro assert_raw_tables_exist() %}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set nodes = graph.sources.values() | selectattr('source_name', 'equalto', 'binlog') | list -%}
        {%- set lacking = [] -%}
        {%- for node in nodes -%}
            {%- set table = load_relation(api.Relation.create(schema=node.schema, identifier=node.identifier)) -%}
            {#- dbt has read the columns together with the names of all tables. -#}
            {%- set described = table.information or '' if table is not none else '' -%}
            {%- set columns = modules.re.findall('\\|-- (\\w+):', described) -%}
            {%- if node.columns.keys() | reject('in', columns) | list -%}
                {%- do lacking.append(node.identifier) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if lacking | length == nodes | length -%}
            {%- do exceptions.raise_compiler_error(
                "there are no tables in schema " ~ nodes[0].schema ~ ": nothing has been landed in this warehouse yet."
                ~ " Land a binlog with `binloom ingest`, or set BINLOOM_HOME to where it was landed. If files are landed,"
                ~ " and a Thrift server does not know their tables yet, run `binloom build`: it makes them."
            ) -%}
        {%- elif lacking -%}
            {%- do exceptions.raise_compiler_error(
                "this warehouse was landed by another version of binloom: " ~ lacking | join(", ") ~ " of schema "
                ~ nodes[0].schema ~ " lack what this one has. `binloom build` adds it."
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
