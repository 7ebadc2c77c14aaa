with

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

segments as (

    select * from {{ ref('stg_binlog__segments') }}

),

landed as (

    select
        source_id,
        epoch,
        binlog_file,
        count_if(status = 'completed') as completed_segments,
        count_if(status = 'failed') as failed_segments,
        sum(segment_end - greatest(segment_start, 4)) filter (where status = 'completed') as bytes_landed,
        sum(row_events) filter (where status = 'completed') as row_events,
        sum(transactions) filter (where status = 'completed') as transactions,
        max(recorded_at) filter (where status = 'completed') as landed_at
    from segments
    group by source_id, epoch, binlog_file

),

final as (

    select
        binlog_files.source_id,
        binlog_files.epoch,
        binlog_files.binlog_file,
        binlog_files.file_sequence,
        binlog_files.flavor,
        binlog_files.server_version,
        binlog_files.format_version,
        binlog_files.checksum_algorithm,
        binlog_files.fingerprint,
        binlog_files.previous_gtids,
        binlog_files.next_binlog_file,
        binlog_files.file_size,
        binlog_files.bytes_covered,
        coalesce(landed.bytes_landed, 0) as bytes_landed,
        binlog_files.checksum_failures,
        binlog_files.events,
        binlog_files.event_counts,
        coalesce(landed.row_events, 0) as row_events,
        coalesce(landed.transactions, 0) as transactions,
        coalesce(landed.completed_segments, 0) as completed_segments,
        coalesce(landed.failed_segments, 0) as failed_segments,
        binlog_files.is_in_use,
        binlog_files.is_relay_log,
        binlog_files.is_encrypted,
        binlog_files.created_at,
        binlog_files.first_event_at,
        binlog_files.last_event_at,
        binlog_files.scanned_at,
        landed.landed_at
    from binlog_files
    left join landed
        on
            binlog_files.source_id = landed.source_id
            and binlog_files.epoch = landed.epoch
            and binlog_files.binlog_file = landed.binlog_file

)

select * from final
