{{ config(post_hook="{{ register_listed_segments() }}") }}

with

segments as (

    select * from {{ ref('stg_binlog__segments') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

final as (

    select
        segments.source_id,
        segments.epoch,
        segments.binlog_file,
        segments.segment_start,
        segments.segment_end,
        coalesce(binlog_files.file_sequence, {{ file_sequence('segments.binlog_file') }}) as file_sequence,
        -- One number per file; together with a position it fits into one bigint, the cheapest join key.
        dense_rank() over (order by segments.source_id, segments.epoch, segments.binlog_file) as file_number,
        segments.row_events,
        segments.row_event_counts,
        segments.transactions,
        segments.table_filter,
        segments.recorded_at as landed_at
    from segments
    left join binlog_files
        on
            segments.source_id = binlog_files.source_id
            and segments.epoch = binlog_files.epoch
            and segments.binlog_file = binlog_files.binlog_file
    where segments.status = 'completed'

)

select * from final
