with

segments as (

    select * from {{ ref('stg_binlog__segments') }}
    where status = 'expired'

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        {{ file_sequence('binlog_file') }} as file_sequence,
        max(segment_end) as end_pos,
        coalesce(sum(transactions), 0) as transactions,
        coalesce(sum(row_events), 0) as row_events,
        min(min_event_at) as first_event_at,
        max(max_event_at) as last_event_at,
        max(recorded_at) as expired_at
    from segments
    group by source_id, epoch, binlog_file

)

select * from final
