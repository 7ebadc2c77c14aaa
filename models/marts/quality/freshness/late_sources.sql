with

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

segments as (

    select * from {{ ref('stg_binlog__segments') }}
    where status = 'completed' and max_event_at is not null

),

newest_files as (

    select
        source_id,
        max_by(
            struct(
                epoch,
                binlog_file,
                coalesce(event_counts['ROTATE'], 0) + coalesce(event_counts['STOP'], 0) = 0 as is_open
            ),
            struct(epoch, file_sequence)
        ) as newest
    from binlog_files
    where not is_relay_log
    group by source_id

),

landed as (

    select
        source_id,
        max(max_event_at) as last_event_at,
        max(max(max_event_at)) over () as newest_event_at
    from segments
    group by source_id

),

final as (

    select
        landed.source_id,
        newest_files.newest.epoch,
        newest_files.newest.binlog_file,
        landed.last_event_at,
        landed.newest_event_at,
        (unix_timestamp(landed.newest_event_at) - unix_timestamp(landed.last_event_at)) / 3600 as hours_behind
    from landed
    inner join newest_files on landed.source_id = newest_files.source_id
    where
        -- A closed series is an archive that expects no more files.
        newest_files.newest.is_open
        and landed.newest_event_at > landed.last_event_at + make_interval(0, 0, 0, 0, {{ var('late_source_hours') }})

)

select * from final
