{{ config(materialized='ephemeral') }}

with

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

segments as (

    select * from {{ ref('stg_binlog__segments') }}
    where is_current

),

gtid_ranges as (

    select * from {{ ref('int_gtid_ranges') }}

),

stream_gaps as (

    select * from {{ ref('stg_binlog__stream_gaps') }}
    where status != 'filled'

),

-- The server that wrote each epoch; NULL for relay logs.
servers as (

    select
        source_id,
        epoch,
        max_by(server_id, observed_at) as server_id
    from {{ ref('stg_binlog__sources') }}
    group by source_id, epoch

),

-- GTIDs can be compared only where the GTIDs of all bytes are known; failed_segments lists segments that are not
-- landed.
looked_at as (

    select
        source_id,
        epoch,
        binlog_file,
        bool_and(status = 'completed' or (status = 'skipped' and gtids is not null)) as is_known,
        flatten(collect_list(case when status = 'skipped' then {{ gtid_intervals('gtids') }} end)) as skipped
    from segments
    group by source_id, epoch, binlog_file

),

-- A MariaDB position includes all numbers up to it.
landed_stems as (

    select
        source_id,
        epoch,
        binlog_file,
        gtid_stem as stem,
        if(gtid_stem like '%-', 1L, first_number) as low,
        max(last_number) as high
    from gtid_ranges
    group by
        source_id,
        epoch,
        binlog_file,
        gtid_stem,
        if(gtid_stem like '%-', 1L, first_number)

),

landed as (

    select
        source_id,
        epoch,
        binlog_file,
        collect_list(case when high is not null then struct(stem, low, high) end) as landed,
        -- Transactions without GTIDs are in no list, so only its last event proves that such a file is complete.
        bool_or(high is null) as has_anonymous
    from landed_stems
    group by source_id, epoch, binlog_file

),

followed as (

    select
        *,
        lead(struct(epoch, binlog_file, file_sequence, previous_gtids)) over (
            partition by source_id
            order by epoch, file_sequence
        ) as following
    from binlog_files
    where file_sequence is not null

),

final as (

    select
        followed.source_id,
        followed.epoch,
        followed.binlog_file,
        followed.file_size,
        followed.is_relay_log,
        followed.previous_gtids,
        followed.next_binlog_file,
        followed.following,
        followed.following.epoch = followed.epoch as is_same_epoch,
        coalesce(servers.server_id = following_servers.server_id, false) as is_same_server,
        -- Servers number files consecutively; after an exception, the ROTATE names the next file.
        followed.following.file_sequence = followed.file_sequence + 1
        or followed.next_binlog_file <=> followed.following.binlog_file as is_contiguous,
        followed.next_binlog_file is not null or coalesce(followed.event_counts['STOP'], 0) > 0 as has_end,
        coalesce(looked_at.is_known, false) as is_known,
        coalesce(landed.has_anonymous, false) as has_anonymous,
        coalesce(looked_at.is_known, false)
        and not followed.is_relay_log
        and followed.previous_gtids is not null
        and followed.following.previous_gtids is not null as is_compared,
        looked_at.skipped,
        landed.landed
    from followed
    left join looked_at
        on
            followed.source_id = looked_at.source_id
            and followed.epoch = looked_at.epoch
            and followed.binlog_file = looked_at.binlog_file
    left join landed
        on
            followed.source_id = landed.source_id
            and followed.epoch = landed.epoch
            and followed.binlog_file = landed.binlog_file
    left join servers
        on
            followed.source_id = servers.source_id
            and followed.epoch = servers.epoch
    left join servers as following_servers
        on
            followed.source_id = following_servers.source_id
            and followed.following.epoch = following_servers.epoch
    -- stream_gaps has the breaks that were found while following a server, and their status.
    left anti join stream_gaps
        on
            followed.source_id = stream_gaps.source_id
            and followed.epoch <=> stream_gaps.from_epoch
            and followed.binlog_file <=> stream_gaps.from_file
    where followed.following is not null

)

select * from final
