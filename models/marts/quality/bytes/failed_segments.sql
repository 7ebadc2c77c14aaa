with

segments as (

    select * from {{ ref('stg_binlog__segments') }}

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        segment_end,
        status,
        error,
        run_id,
        recorded_at
    from segments
    where is_current and status in ('in_progress', 'failed')

)

select * from final
