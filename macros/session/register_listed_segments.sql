{% macro register_listed_segments() %}
    {#- Nothing that changes the properties of `segments` may come between the listing and the models: it would let
        Spark list the files again, with segments whose partitions nobody has registered. -#}
    {%- if execute -%}
        {%- set segments = source('binlog', 'segments').render() -%}
        {%- set row_events = source('binlog', 'row_events').render() -%}
        {%- set now = run_query(
            "select date_format(max(recorded_at), 'yyyy-MM-dd HH:mm:ss.SSSSSS') || ', ' || count(distinct source_id,"
            ~ " epoch, binlog_file, segment_start, segment_end, status, run_id, recorded_at) || ' states'"
            ~ " from " ~ segments ~ " where status in ('completed', 'removed', 'expired')"
        ).rows[0][0] -%}
        {%- set known = [] -%}
        {%- for row in run_query("show tblproperties " ~ row_events).rows -%}
            {%- do known.append(row[1]) if row[0] == 'binloom.registered_until' -%}
        {%- endfor -%}
        {%- if now is not none and now not in known -%}
            {%- for name in ['row_events', 'transactions', 'statements', 'ddl_actions', 'unsupported_events'] -%}
                {%- do run_query("msck repair table " ~ source('binlog', name).render() ~ " sync partitions") -%}
            {%- endfor -%}
            {%- do run_query(
                "alter table " ~ row_events ~ " set tblproperties ('binloom.registered_until' = '" ~ now ~ "')"
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
