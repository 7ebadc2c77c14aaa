with

segments as (

    select * from {{ ref('stg_binlog__segments') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

-- What failed is known and listed in failed_segments; what is in progress is on its way; what was skipped is meant.
covered as (

    select
        source_id,
        epoch,
        binlog_file,
        -- A compacted segment starts with the magic number.
        greatest(segment_start, 4) as segment_start,
        segment_end,
        coalesce(
            max(segment_end) over (
                partition by source_id, epoch, binlog_file
                order by segment_start, segment_end
                rows between unbounded preceding and 1 preceding
            ),
            -- The magic number in front of the first event.
            4
        ) as covered_until
    from segments
    where is_current

),

between_segments as (

    select
        source_id,
        epoch,
        binlog_file,
        least(covered_until, segment_start) as range_start,
        greatest(covered_until, segment_start) as range_end,
        if(segment_start > covered_until, 'gap', 'overlap') as defect
    from covered
    where segment_start != covered_until

),

ends as (

    select
        source_id,
        epoch,
        binlog_file,
        max(segment_end) as covered_until
    from segments
    where is_current
    group by source_id, epoch, binlog_file

),

-- The tail of a file that is being written waits for its transaction to end.
after_segments as (

    select
        binlog_files.source_id,
        binlog_files.epoch,
        binlog_files.binlog_file,
        coalesce(ends.covered_until, 4) as range_start,
        binlog_files.file_size as range_end,
        'gap' as defect
    from binlog_files
    left join ends
        on
            binlog_files.source_id = ends.source_id
            and binlog_files.epoch = ends.epoch
            and binlog_files.binlog_file = ends.binlog_file
    where
        coalesce(ends.covered_until, 4) < binlog_files.file_size
        and not binlog_files.is_in_use

),

final as (

    select * from between_segments
    union all
    select * from after_segments

)

select * from final
