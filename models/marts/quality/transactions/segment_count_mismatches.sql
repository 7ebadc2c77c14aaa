with

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

counted as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        sum(row_events) as row_events
    from row_event_counts
    group by
        source_id,
        epoch,
        binlog_file,
        segment_start

),

final as (

    select
        completed_segments.source_id,
        completed_segments.epoch,
        completed_segments.binlog_file,
        completed_segments.segment_start,
        completed_segments.segment_end,
        completed_segments.row_events as row_events_decoded,
        coalesce(counted.row_events, 0) as row_events_read
    from completed_segments
    left join counted
        on {{ same_segment('completed_segments', 'counted') }}
    where completed_segments.row_events != coalesce(counted.row_events, 0)

)

select * from final
