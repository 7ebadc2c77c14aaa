{% macro register_landed_segments() %}
    {#- `binloom follow` lands without a metastore: see ingest.warehouse.partitions. A session lists the files of an
        unpartitioned table only once. This macro lists them before it registers partitions: then every segment that
        models of this run see as completed is registered, and the segments of every file that they see are listed.
        `binloom build` has done all this just before, in the same session. -#}
    {%- if execute and flags.WHICH in ['run', 'build', 'test'] -%}
        {%- if run_query("set binloom.tables_are_open").rows[0][1] == 'true' -%}
            {%- do run_query("set binloom.tables_are_open = false") -%}
        {%- elif load_relation(source('binlog', 'row_events')) is not none -%}
            {%- set binlog_files = source('binlog', 'binlog_files').render() -%}
            {%- do run_query("refresh table " ~ binlog_files) -%}
            {%- do run_query("select scanned_at from " ~ binlog_files ~ " limit 0") -%}
            {%- do run_query("refresh table " ~ source('binlog', 'segments').render()) -%}
            {%- do register_listed_segments() -%}
            {#- The names of what is landed by now: see ingest.landing.published. -#}
            {%- for name in ['schema_histories', 'table_versions', 'table_bindings'] -%}
                {%- do run_query("refresh table " ~ source('binlog', name).render()) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
