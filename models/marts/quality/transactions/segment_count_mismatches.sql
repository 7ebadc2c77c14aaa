with

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

counted as (

    select
        *,
        coalesce(
            aggregate(
                row_event_counts, cast(0 as bigint), (total, one) -> total + one.inserts + one.updates + one.deletes
            ),
            0
        ) as row_events_counted
    from completed_segments

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        segment_end,
        row_events as row_events_decoded,
        row_events_counted as row_events_read
    from counted
    where row_events != row_events_counted

)

select * from final
