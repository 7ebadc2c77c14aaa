with

stream_gaps as (

    select * from {{ ref('stg_binlog__stream_gaps') }}

),

consecutive_files as (

    select * from {{ ref('int_consecutive_files') }}

),

-- The log begins anew in files that were not followed, but landed. After a RESET, no list of GTIDs proves that the last
-- file was complete; without GTIDs, nothing shows where the log of another server continues. file_breaks compares lists
-- of GTIDs. The columns are those of stream_gaps, in their order.
unproven as (

    select
        concat_ws('/', source_id, epoch, binlog_file) as gap_id,
        source_id,
        epoch as from_epoch,
        binlog_file as from_file,
        file_size as from_pos,
        cast(null as string) as from_gtids,
        following.epoch as to_epoch,
        following.binlog_file as to_file,
        4L as to_pos,
        following.previous_gtids as to_gtids,
        cast(null as string) as missing_gtids,
        if(is_same_server, 'reset', 'diverged') as reason,
        'unproven' as status,
        'the log begins anew in files that were landed, not followed' as detail,
        cast(null as string) as server_uuid,
        cast(null as timestamp) as found_at,
        cast(null as timestamp) as recorded_at
    from consecutive_files
    where
        not is_same_epoch
        and not is_relay_log
        and is_known
        and if(
            is_same_server,
            following.file_sequence = 1 and not has_end,
            following.file_sequence > 1 and not (is_compared and following.previous_gtids != '')
        )

),

gaps as (

    select * from stream_gaps

    union all

    select * from unproven

),

final as (

    select
        gap_id,
        source_id,
        from_epoch,
        from_file,
        from_pos,
        from_gtids,
        to_epoch,
        to_file,
        to_pos,
        to_gtids,
        missing_gtids,
        reason,
        status,
        case
            when status = 'found' then 'following has stopped; what lies between has not been read'
            when status = 'accepted' then 'what lies between is missing, and was given up with --accept-gap'
            when status = 'unproven' then 'nothing is known to be missing, but the log does not show that nothing is'
        end as meaning,
        detail,
        server_uuid,
        found_at,
        recorded_at
    from gaps
    where status != 'filled'

)

select * from final
