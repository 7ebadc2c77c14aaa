with

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

segments as (

    select * from {{ ref('stg_binlog__segments') }}
    where is_current

),

sources as (

    select distinct
        source_id,
        epoch,
        server_id
    from {{ ref('stg_binlog__sources') }}
    where observed_at >= opened_at

),

gtid_ranges as (

    select * from {{ ref('int_gtid_ranges') }}
    where first_number is not null

),

-- failed_segments lists failed segments, and the GTIDs of segments that were skipped without a list are unknown.
looked_at as (

    select
        source_id,
        epoch,
        binlog_file,
        flatten(collect_list(case when status = 'skipped' then {{ gtid_intervals('gtids') }} end)) as skipped
    from segments
    group by source_id, epoch, binlog_file
    having bool_and(status = 'completed' or (status = 'skipped' and gtids is not null))

),

files as (

    select
        binlog_files.source_id,
        binlog_files.epoch,
        binlog_files.binlog_file,
        binlog_files.previous_gtids,
        looked_at.skipped,
        lead(binlog_files.binlog_file) over (
            partition by binlog_files.source_id, binlog_files.epoch order by binlog_files.file_sequence
        ) is null as is_newest
    from binlog_files
    inner join looked_at
        on
            binlog_files.source_id = looked_at.source_id
            and binlog_files.epoch = looked_at.epoch
            and binlog_files.binlog_file = looked_at.binlog_file
    where not binlog_files.is_relay_log

),

-- For MySQL only the newest files: file_breaks compares earlier files with the list of the file after them.
landed as (

    select
        files.source_id,
        files.epoch,
        files.binlog_file,
        false as is_said,
        gtid_ranges.gtid_stem as stem,
        gtid_ranges.first_number as low,
        gtid_ranges.last_number as high
    from files
    inner join gtid_ranges
        on
            files.source_id = gtid_ranges.source_id
            and files.epoch = gtid_ranges.epoch
            and files.binlog_file = gtid_ranges.binlog_file
    where files.is_newest or gtid_ranges.gtid_stem like '%-'

),

lists as (

    select
        source_id,
        epoch,
        binlog_file,
        is_newest,
        inline(
            array(
                struct(false as is_said, skipped as intervals),
                struct(true as is_said, {{ gtid_intervals('previous_gtids') }} as intervals)
            )
        )
    from files

),

listed as (

    select
        source_id,
        epoch,
        binlog_file,
        is_newest,
        is_said,
        stem,
        low,
        high
    from lists
        lateral view inline(intervals) as stem, low, high

),

intervals as (

    select * from landed

    union all

    select
        source_id,
        epoch,
        binlog_file,
        is_said,
        stem,
        low,
        high
    from listed
    where if(stem like '%-', not is_said, is_newest)

),

-- All servers of a MariaDB domain share one sequence of numbers.
ordered as (

    select
        *,
        max(high) over numbers as covered_until,
        max_by(stem, high) over numbers as stem_before,
        coalesce(max(if(is_said, high, 0)) over series, 0) as said_until
    from intervals
    window
        series as (
            partition by source_id, epoch, binlog_file, if(stem like '%-', split_part(stem, '-', 1), stem)
        ),
        numbers as (
            partition by source_id, epoch, binlog_file, if(stem like '%-', split_part(stem, '-', 1), stem)
            order by low, high
            rows between unbounded preceding and 1 preceding
        )

),

final as (

    select
        ordered.source_id,
        ordered.epoch,
        ordered.binlog_file,
        ordered.stem as gtid_stem,
        ordered.covered_until + 1 as first_number,
        ordered.low - 1 as last_number,
        {{ gtid_range_text('ordered.stem', '(ordered.covered_until + 1)', '(ordered.low - 1)') }} as missing_gtids
    from ordered
    left join sources
        on
            ordered.source_id = sources.source_id
            and ordered.epoch = sources.epoch
            and ordered.stem rlike concat('^[0-9]+-', sources.server_id, '-$')
    where
        ordered.low > ordered.covered_until + 1
        and if(
            ordered.stem like '%:',
            -- A hole in the server's own list is no hole in the log, and each group member has its own block of
            -- numbers.
            ordered.covered_until >= ordered.said_until
            and (ordered.low - 1) % {{ var('gtid_assignment_block_size') }} != 0,
            -- A replica may skip transactions of other servers; its own numbers have no holes.
            ordered.stem = ordered.stem_before and sources.server_id is not null
        )

)

select * from final
