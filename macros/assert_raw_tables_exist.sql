{% macro assert_raw_tables_exist() %}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- for node in graph.sources.values() if node.source_name == 'binlog' -%}
            {%- if load_relation(api.Relation.create(schema=node.schema, identifier=node.identifier)) is none -%}
                {%- do exceptions.raise_compiler_error(
                    "there is no table " ~ node.schema ~ "." ~ node.identifier ~ ": nothing has been landed in this"
                    ~ " warehouse yet. Land a binlog with `binloom ingest`, or set BINLOOM_HOME to where it was landed."
                ) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
