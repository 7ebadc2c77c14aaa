with

quarantined_row_events as (

    select * from {{ ref('quarantined_row_events') }}

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        reason,
        detail,
        count(*) as row_events,
        min(struct(epoch, file_sequence, start_pos, binlog_file)).binlog_file as first_binlog_file,
        min(struct(epoch, file_sequence, start_pos, binlog_file)).start_pos as first_pos,
        min(event_timestamp) as first_event_at,
        max(event_timestamp) as last_event_at
    from quarantined_row_events
    -- These are in undecoded_events, lost_events and uncovered_bytes.
    where reason != 'decode_error'
    group by source_id, schema_name, table_name, reason, detail

)

select * from final
