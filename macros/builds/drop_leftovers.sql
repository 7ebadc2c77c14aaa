{% macro drop_leftovers() %}
    {#- SQL has no statement that deletes a folder. But dropping a table deletes its partitions, wherever they are, so
        every folder that a dead build left becomes a partition of one table. -#}
    {%- set leftovers = api.Relation.create(schema='binlog_raw', identifier='left_by_a_dead_build', type='table') -%}
    {%- set existing = built_tables() | selectattr('exists') | list -%}
    {%- set folders = built_tables() | rejectattr('exists') | map(attribute='folder') | list -%}
    {%- for table in existing -%}
        {%- do folders.append(table.folder ~ '/_temporary') -%}
    {%- endfor -%}
    {%- do run_query("drop table if exists " ~ leftovers) -%}
    {%- if folders -%}
        {%- do run_query(
            "create table " ~ leftovers ~ " (x int, folder string) using parquet partitioned by (folder)"
        ) -%}
        {%- do add_leftovers(leftovers, folders) -%}
        {%- do add_leftovers(leftovers, staging_folders(existing)) -%}
        {%- do run_query("drop table " ~ leftovers) -%}
    {%- endif -%}
    {#- A partition that was written or dropped halfway has a folder and is not in the metastore. Once registered, its
        model finds it stale. -#}
    {%- for table in existing if table.is_partitioned -%}
        {%- do run_query("msck repair table " ~ table.relation) -%}
    {%- endfor -%}
{% endmacro %}
