with

landed as (

    select * from {{ source('binlog', 'segments') }}

),

ranked as (

    select
        *,
        -- For two states with the same time, the later state in the life of a segment wins.
        row_number() over (
            partition by source_id, epoch, binlog_file, segment_start
            order by
                recorded_at desc,
                array_position(
                    array('expired', 'removed', 'replaced', 'completed', 'skipped', 'failed', 'in_progress'),
                    status
                ),
                -- A state of an older binloom is there once more with its counts.
                row_event_counts is null
        ) as recency
    from landed

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        segment_end,
        status,
        row_events,
        transactions,
        min_event_at,
        max_event_at,
        error,
        run_id,
        recorded_at,
        table_filter,
        gtids,
        row_event_counts,
        -- A compacted segment is valid once it is completed; until then the segments that it replaces are.
        if(
            segment_start = 0, status = 'completed', status not in ('replaced', 'removed', 'expired')
        ) as is_current
    from ranked
    where recency = 1

)

select * from final
