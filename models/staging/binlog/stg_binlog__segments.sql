with

landed as (

    select * from {{ source('binlog', 'segments') }}

),

ranked as (

    select
        *,
        -- Two states of one instant: the segment is what it became last.
        row_number() over (
            partition by source_id, epoch, binlog_file, segment_start
            order by
                recorded_at desc,
                array_position(array('removed', 'replaced', 'completed', 'skipped', 'failed', 'in_progress'), status)
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
        -- A compacted segment stands for the file when it is completed, until then those that it is made of do.
        if(
            segment_start = 0, status = 'completed', status not in ('replaced', 'removed')
        ) as is_current
    from ranked
    where recency = 1

)

select * from final
