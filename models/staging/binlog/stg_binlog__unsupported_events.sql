with

landed as (

    {{ completed_segments_only(source('binlog', 'unsupported_events')) }}

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        end_pos,
        event_type,
        schema_name,
        table_name,
        reason,
        detail
    from landed

)

select * from final
