with

consecutive_files as (

    select * from {{ ref('int_consecutive_files') }}

),

gtid_differences as (

    select * from {{ ref('int_gtid_differences') }}

),

judged as (

    select
        consecutive_files.source_id,
        consecutive_files.epoch,
        consecutive_files.binlog_file,
        consecutive_files.next_binlog_file,
        consecutive_files.following.epoch as following_epoch,
        consecutive_files.following.binlog_file as following_binlog_file,
        case
            when
                not consecutive_files.is_same_epoch
                then case
                    when gtid_differences.binlog_file is not null then 'other_gtids'
                    -- After a RESET, numbers begin at 1, and the lists of GTIDs say nothing of the log before it.
                    when
                        consecutive_files.is_same_server and consecutive_files.following.file_sequence > 1
                        then 'missing_files'
                end
            when not consecutive_files.is_contiguous then 'missing_files'
            when consecutive_files.is_relay_log then null
            when consecutive_files.next_binlog_file != consecutive_files.following.binlog_file then 'other_next_file'
            when gtid_differences.binlog_file is not null then 'other_gtids'
            when
                not consecutive_files.has_end
                and consecutive_files.is_known
                and (not consecutive_files.is_compared or consecutive_files.has_anonymous)
                then 'no_end'
        end as defect,
        nullif(gtid_differences.missing_gtids, '') as missing_gtids,
        nullif(gtid_differences.unexpected_gtids, '') as unexpected_gtids
    from consecutive_files
    left join gtid_differences
        on
            consecutive_files.source_id = gtid_differences.source_id
            and consecutive_files.epoch = gtid_differences.epoch
            and consecutive_files.binlog_file = gtid_differences.binlog_file

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        next_binlog_file,
        following_epoch,
        following_binlog_file,
        defect,
        missing_gtids,
        unexpected_gtids
    from judged
    where defect is not null

)

select * from final
