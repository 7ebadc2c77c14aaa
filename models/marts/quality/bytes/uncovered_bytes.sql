with

segments as (

    select * from {{ ref('stg_binlog__segments') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}
    where reason = 'bad_checksum'

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

-- With --skip-bad-checksum, an event that is broken is passed over.
passed_over as (

    select distinct
        source_id,
        epoch,
        binlog_file,
        start_pos as range_start,
        end_pos as range_end,
        'bad_checksum' as defect
    from unsupported_events

),

explained as (

    select
        source_id,
        epoch,
        binlog_file
    from segments
    where is_current and status = 'failed'

    union all

    select
        source_id,
        epoch,
        binlog_file
    from passed_over

),

-- Broken after it was landed: no segment and no event says where.
broken_since as (

    select
        binlog_files.source_id,
        binlog_files.epoch,
        binlog_files.binlog_file,
        4 as range_start,
        binlog_files.file_size as range_end,
        'bad_checksum' as defect
    from binlog_files
    left anti join explained
        on
            binlog_files.source_id = explained.source_id
            and binlog_files.epoch = explained.epoch
            and binlog_files.binlog_file = explained.binlog_file
    where binlog_files.checksum_failures > 0

),

misplaced as (

    select
        source_id,
        epoch,
        binlog_file,
        first_misplaced_pos as range_start,
        first_misplaced_pos as range_end,
        'misplaced' as defect
    from binlog_files
    where first_misplaced_pos is not null

),

final as (

    select * from between_segments
    union all
    select * from after_segments
    union all
    select * from passed_over
    union all
    select * from broken_since
    union all
    select * from misplaced

)

select * from final
