with

landed as (

    select * from {{ source('binlog', 'segments') }}

),

ranked as (

    select
        *,
        -- Two states of one instant: the segment is what it became last, so completed before failed before in_progress.
        row_number() over (
            partition by source_id, epoch, binlog_file, segment_start
            order by recorded_at desc, status = 'completed' desc, status = 'failed' desc
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
        table_filter
    from ranked
    where recency = 1

)

select * from final
