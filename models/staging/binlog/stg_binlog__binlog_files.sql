with

landed as (

    select * from {{ source('binlog', 'binlog_files') }}

),

expired_segments as (

    select * from {{ ref('stg_binlog__segments') }}
    where status = 'expired'

),

-- The log begins after the files that expired; the mart expired_files lists them.
kept as (

    select landed.*
    from landed
    left anti join expired_segments
        on
            landed.source_id = expired_segments.source_id
            and landed.epoch = expired_segments.epoch
            and landed.binlog_file = expired_segments.binlog_file

),

ranked as (

    select
        *,
        row_number() over (
            partition by source_id, epoch, binlog_file
            order by scanned_at desc, file_size desc
        ) as recency
    from kept

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        file_sequence,
        file_size,
        fingerprint,
        format_version,
        server_version,
        flavor,
        checksum_algorithm,
        is_in_use,
        is_relay_log,
        is_encrypted,
        created_at,
        first_event_at,
        last_event_at,
        events,
        event_counts,
        bytes_covered,
        checksum_failures,
        first_misplaced_pos,
        previous_gtids,
        next_binlog_file,
        scanned_at
    from ranked
    where recency = 1

)

select * from final
