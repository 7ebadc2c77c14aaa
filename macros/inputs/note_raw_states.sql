{% macro note_raw_states() %}
    {#- Rows of partitioned tables change only together with rows of `segments`, and those of `baseline_rows` with rows
        of `baselines`. Any other table is as its files are. -#}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set raw = shared_notes().raw -%}
        {%- set selects = [] -%}
        {%- for node in graph.sources.values() if node.source_name == 'binlog' and node.name != 'baseline_rows' -%}
            {%- set table = api.Relation.create(schema=node.schema, identifier=node.identifier) -%}
            {%- set table = load_cached_relation(table) -%}
            {%- if table is not none and 'Partition Provider' not in (table.information or '') -%}
                {#- A table without rows is in no group. -#}
                {%- do raw.update({node.name: local_md5('')}) -%}
                {%- do selects.append(
                    "select '" ~ node.name ~ "' as name, concat_ws(' ', _metadata.file_path, _metadata.file_size,"
                    ~ " _metadata.file_modification_time) as file from " ~ table
                ) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- set states = run_query(
            "select name, md5(array_join(array_sort(collect_set(file)), ',')) from ("
            ~ selects | join(' union all ') ~ ") group by name"
        ) -%}
        {%- for row in states.rows -%}
            {%- do raw.update({row[0]: row[1]}) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
