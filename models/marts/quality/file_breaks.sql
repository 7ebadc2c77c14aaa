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

paired as (

    select
        followed.*,
        followed.following.epoch = followed.epoch as is_same_epoch,
        -- Servers count on by one; where one did not, its ROTATE says so.
        followed.following.file_sequence = followed.file_sequence + 1
        or followed.next_binlog_file <=> followed.following.binlog_file as is_contiguous,
        coalesce(followed.event_counts['STOP'], 0) > 0 as has_stop
    from followed
    -- What was found while a server was followed, and what became of it, stands there.
    left anti join stream_gaps
        on
            followed.source_id = stream_gaps.source_id
            and followed.epoch <=> stream_gaps.from_epoch
            and followed.binlog_file <=> stream_gaps.from_file
    where followed.following is not null

),

-- GTIDs can be compared only where those of all bytes are known: what is not landed is listed in failed_segments.
known_files as (

    select
        source_id,
        epoch,
        binlog_file
    from segments
    group by source_id, epoch, binlog_file
    having every(status = 'completed' or (status = 'skipped' and gtids is not null))

),

compared_files as (

    select paired.*
    from paired
    left semi join known_files
        on
            paired.source_id = known_files.source_id
            and paired.epoch = known_files.epoch
            and paired.binlog_file = known_files.binlog_file
    where
        not paired.is_relay_log
        and paired.previous_gtids is not null
        and paired.following.previous_gtids is not null

),

intervals as (

    select
        source_id,
        epoch,
        binlog_file,
        true as is_landed,
        inline({{ gtid_intervals('previous_gtids') }})
    from compared_files

    union all

    select
        source_id,
        epoch,
        binlog_file,
        false as is_landed,
        inline({{ gtid_intervals('following.previous_gtids') }})
    from compared_files

    union all

    select
        segments.source_id,
        segments.epoch,
        segments.binlog_file,
        true as is_landed,
        inline({{ gtid_intervals('segments.gtids') }})
    from segments
    left semi join compared_files
        on
            segments.source_id = compared_files.source_id
            and segments.epoch = compared_files.epoch
            and segments.binlog_file = compared_files.binlog_file
    where segments.status = 'skipped'

    union all

    select
        gtid_ranges.source_id,
        gtid_ranges.epoch,
        gtid_ranges.binlog_file,
        true as is_landed,
        gtid_ranges.gtid_stem as stem,
        -- A position of MariaDB stands for all up to it.
        if(gtid_ranges.gtid_stem like '%-', 1L, gtid_ranges.first_number) as low,
        gtid_ranges.last_number as high
    from gtid_ranges
    left semi join compared_files
        on
            gtid_ranges.source_id = compared_files.source_id
            and gtid_ranges.epoch = compared_files.epoch
            and gtid_ranges.binlog_file = compared_files.binlog_file
    where gtid_ranges.first_number is not null

),

steps as (

    select
        source_id,
        epoch,
        binlog_file,
        stem,
        low as number,
        if(is_landed, 1, 0) as landed_step,
        if(is_landed, 0, 1) as said_step
    from intervals

    union all

    select
        source_id,
        epoch,
        binlog_file,
        stem,
        high + 1 as number,
        if(is_landed, -1, 0) as landed_step,
        if(is_landed, 0, -1) as said_step
    from intervals

),

summed_steps as (

    select
        source_id,
        epoch,
        binlog_file,
        stem,
        number,
        sum(landed_step) as landed_step,
        sum(said_step) as said_step
    from steps
    group by
        source_id,
        epoch,
        binlog_file,
        stem,
        number

),

-- From each number to the next at which something begins or ends: in how many intervals it lies.
stretches as (

    select
        source_id,
        epoch,
        binlog_file,
        stem,
        number as low,
        lead(number) over (partition by source_id, epoch, binlog_file, stem order by number) - 1 as high,
        sum(landed_step) over (partition by source_id, epoch, binlog_file, stem order by number) > 0 as is_landed,
        sum(said_step) over (partition by source_id, epoch, binlog_file, stem order by number) > 0 as is_said
    from summed_steps

),

-- Of whom both sides know: a domain of MariaDB that a list has not at all was deleted (FLUSH BINARY LOGS
-- DELETE_DOMAIN_ID), and who takes over has transactions that the one before never had.
stems as (

    select
        source_id,
        epoch,
        binlog_file,
        stem,
        bool_or(is_landed) as is_landed,
        bool_or(not is_landed) as is_said,
        bool_or(bool_or(not is_landed)) over (
            partition by source_id, epoch, binlog_file, if(stem like '%-', substring_index(stem, '-', 1), stem)
        ) as has_domain
    from intervals
    group by source_id, epoch, binlog_file, stem

),

differences as (

    select
        stretches.*,
        {{ gtid_range_text('stretches.stem', 'stretches.low', 'stretches.high') }} as gtids
    from stretches
    inner join stems
        on
            stretches.source_id = stems.source_id
            and stretches.epoch = stems.epoch
            and stretches.binlog_file = stems.binlog_file
            and stretches.stem = stems.stem
    inner join compared_files
        on
            stretches.source_id = compared_files.source_id
            and stretches.epoch = compared_files.epoch
            and stretches.binlog_file = compared_files.binlog_file
    where
        stretches.is_landed != stretches.is_said
        and if(
            compared_files.is_same_epoch,
            stretches.is_said or stretches.stem like '%:' or stems.has_domain,
            -- What the one before had and the other has not is either found while following, or was written there later.
            stretches.is_said and stems.is_landed
        )

),

differing_files as (

    select
        source_id,
        epoch,
        binlog_file,
        array_join(array_sort(collect_list(case when is_said then gtids end)), ',') as missing_gtids,
        array_join(array_sort(collect_list(case when is_landed then gtids end)), ',') as unexpected_gtids
    from differences
    group by source_id, epoch, binlog_file

),

-- Transactions without GTIDs are in no list: only its last event says where such a file ends.
anonymous_files as (

    select distinct
        source_id,
        epoch,
        binlog_file
    from gtid_ranges
    where first_number is null

),

judged as (

    select
        paired.source_id,
        paired.epoch,
        paired.binlog_file,
        paired.next_binlog_file,
        paired.following.epoch as following_epoch,
        paired.following.binlog_file as following_binlog_file,
        nullif(differing_files.missing_gtids, '') as missing_gtids,
        nullif(differing_files.unexpected_gtids, '') as unexpected_gtids,
        case
            when not paired.is_same_epoch then if(differing_files.binlog_file is null, null, 'other_gtids')
            when not paired.is_contiguous then 'missing_files'
            when paired.is_relay_log then null
            when paired.next_binlog_file != paired.following.binlog_file then 'other_next_file'
            when differing_files.binlog_file is not null then 'other_gtids'
            when
                paired.next_binlog_file is null
                and not paired.has_stop
                and known_files.binlog_file is not null
                and (compared_files.binlog_file is null or anonymous_files.binlog_file is not null)
                then 'no_end'
        end as defect
    from paired
    left join differing_files
        on
            paired.source_id = differing_files.source_id
            and paired.epoch = differing_files.epoch
            and paired.binlog_file = differing_files.binlog_file
    left join known_files
        on
            paired.source_id = known_files.source_id
            and paired.epoch = known_files.epoch
            and paired.binlog_file = known_files.binlog_file
    left join compared_files
        on
            paired.source_id = compared_files.source_id
            and paired.epoch = compared_files.epoch
            and paired.binlog_file = compared_files.binlog_file
    left join anonymous_files
        on
            paired.source_id = anonymous_files.source_id
            and paired.epoch = anonymous_files.epoch
            and paired.binlog_file = anonymous_files.binlog_file

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
