{% macro register_landed_segments() %}
    {#- `binloom follow` lands without a metastore: see ingest.warehouse.partitions. A session lists the files of an
        unpartitioned table only once. This macro lists them before it registers partitions: then every segment that
        models of this run see as completed is registered, and the segments of every file that they see are listed.
        `binloom build` has done all this just before, in the same session. -#}
    {%- set found = {} -%}
    {%- if execute and flags.WHICH in ['run', 'build', 'test'] -%}
        {%- if run_query("set binloom.tables_are_open").rows[0][1] == 'true' -%}
            {%- do run_query("set binloom.tables_are_open = false") -%}
        {%- else -%}
            {%- for name in ['binlog_files', 'segments', 'row_events'] -%}
                {%- set table = api.Relation.create(schema='binlog_raw', identifier=name) -%}
                {%- do found.update({name: load_relation(table)}) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
    {%- if found and none not in found.values() -%}
        {%- do run_query("refresh table " ~ found['binlog_files']) -%}
        {%- do run_query("select scanned_at from " ~ found['binlog_files'] ~ " limit 0") -%}
        {%- do run_query("refresh table " ~ found['segments']) -%}
        {%- set now = run_query(
            "select date_format(max(recorded_at), 'yyyy-MM-dd HH:mm:ss.SSSSSS') || ', ' || count(distinct source_id,"
            ~ " epoch, binlog_file, segment_start, segment_end, status, run_id, recorded_at) || ' states'"
            ~ " from " ~ found['segments'] ~ " where status in ('completed', 'removed', 'expired')"
        ).rows[0][0] -%}
        {%- set known = [] -%}
        {%- for row in run_query("show tblproperties " ~ found['row_events']).rows -%}
            {%- do known.append(row[1]) if row[0] == 'binloom.registered_until' -%}
        {%- endfor -%}
        {%- if now is not none and now not in known -%}
            {%- for name in ['row_events', 'transactions', 'statements', 'ddl_actions', 'unsupported_events'] -%}
                {%- do run_query("msck repair table binlog_raw." ~ name ~ " sync partitions") -%}
            {%- endfor -%}
            {%- do run_query(
                "alter table " ~ found['row_events'] ~ " set tblproperties ('binloom.registered_until' = '" ~ now ~ "')"
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
