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

-- All segments count as covered: failed_segments lists failed ones, those in progress will be landed, and skipped ones
-- are intended.
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
            -- The magic number before the first event.
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

-- With --skip-bad-checksum, a damaged event is skipped.
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

-- Files that were damaged after they were landed: no segment and no event records where.
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
