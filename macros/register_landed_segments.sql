{% macro register_landed_segments() %}
    {#- What `binloom follow` lands, it lands without a metastore: see ingest.landing.partitions. What is asked here fixes
        the list of the files of `segments` that the models of this run read: what they call completed is registered. -#}
    {%- set segments = load_relation(api.Relation.create(schema='binlog_raw', identifier='segments')) -%}
    {%- set row_events = load_relation(api.Relation.create(schema='binlog_raw', identifier='row_events')) -%}
    {%- if execute and flags.WHICH in ['run', 'build', 'test'] and segments is not none and row_events is not none -%}
        {%- do run_query("refresh table " ~ segments) -%}
        {%- set latest = run_query(
            "select date_format(max(recorded_at), 'yyyy-MM-dd HH:mm:ss.SSSSSS') from " ~ segments
            ~ " where status = 'completed'"
        ).rows[0][0] -%}
        {%- set known = [] -%}
        {%- for row in run_query("show tblproperties " ~ row_events).rows if row[0] == 'binloom.registered_until' -%}
            {%- do known.append(row[1]) -%}
        {%- endfor -%}
        {%- if latest is not none and (not known or known[0] < latest) -%}
            {%- for table in ['row_events', 'transactions', 'statements', 'unsupported_events'] -%}
                {%- do run_query("msck repair table " ~ row_events.schema ~ "." ~ table ~ " sync partitions") -%}
            {%- endfor -%}
            {%- do run_query(
                "alter table " ~ row_events ~ " set tblproperties ('binloom.registered_until' = '" ~ latest ~ "')"
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
