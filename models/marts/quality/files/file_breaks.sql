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

-- GTIDs can be compared only where the GTIDs of all bytes are known; failed_segments lists segments that are not
-- landed.
looked_at as (

    select
        source_id,
        epoch,
        binlog_file,
        every(status = 'completed' or (status = 'skipped' and gtids is not null)) as is_known,
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

paired as (

    select
        followed.*,
        followed.following.epoch = followed.epoch as is_same_epoch,
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
    -- stream_gaps has the breaks that were found while following a server, and their status.
    left anti join stream_gaps
        on
            followed.source_id = stream_gaps.source_id
            and followed.epoch <=> stream_gaps.from_epoch
            and followed.binlog_file <=> stream_gaps.from_file
    where followed.following is not null

),

sides as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        inline(
            array(
                struct(
                    1 as landed_step,
                    0 as said_step,
                    concat(
                        {{ gtid_intervals('previous_gtids') }},
                        coalesce(skipped, array()),
                        coalesce(landed, array())
                    ) as intervals
                ),
                struct(0 as landed_step, 1 as said_step, {{ gtid_intervals('following.previous_gtids') }} as intervals)
            )
        )
    from paired
    where is_compared

),

intervals as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        landed_step,
        said_step,
        stem,
        low,
        high
    from sides
        lateral view inline(intervals) as stem, low, high

),

steps as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        stem,
        number,
        landed_step * direction as landed_step,
        said_step * direction as said_step
    from intervals
        lateral view inline(
            array(
                named_struct('number', low, 'direction', 1),
                named_struct('number', high + 1, 'direction', -1)
            )
        ) as number, direction

),

summed_steps as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        stem,
        number,
        sum(landed_step) as landed_step,
        sum(said_step) as said_step,
        bool_or(landed_step != 0) as is_of_landed,
        bool_or(said_step != 0) as is_of_said
    from steps
    group by
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        stem,
        number

),

-- Ranges from one number at which an interval begins or ends to the next: whether they were landed, and whether the
-- list has them.
stretches as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        stem,
        number as low,
        lead(number) over numbers - 1 as high,
        sum(landed_step) over numbers > 0 as is_landed,
        sum(said_step) over numbers > 0 as is_said,
        bool_or(is_of_landed) over series as has_landed,
        bool_or(is_of_said) over domain as has_said
    from summed_steps
    window
        numbers as (partition by source_id, epoch, binlog_file, stem order by number),
        series as (partition by source_id, epoch, binlog_file, stem),
        domain as (
            partition by source_id, epoch, binlog_file, if(stem like '%-', substring_index(stem, '-', 1), stem)
        )

),

differing_files as (

    select
        source_id,
        epoch,
        binlog_file,
        array_join(
            array_sort(
                collect_list(case when is_said then {{ gtid_range_text('stem', 'low', 'high') }} end)
            ),
            ','
        ) as missing_gtids,
        array_join(
            array_sort(
                collect_list(case when is_landed then {{ gtid_range_text('stem', 'low', 'high') }} end)
            ),
            ','
        ) as unexpected_gtids
    from stretches
    where
        is_landed != is_said
        and if(
            is_same_epoch,
            -- A MariaDB domain that is missing from the whole list was deleted (FLUSH BINARY LOGS DELETE_DOMAIN_ID).
            is_said or stem like '%:' or has_said,
            -- After a failover, the new server has transactions that the old one never had. Transactions that only the
            -- old server had are either found while following, or were written by the new server later.
            is_said and has_landed
        )
    group by source_id, epoch, binlog_file

),

judged as (

    select
        paired.source_id,
        paired.epoch,
        paired.binlog_file,
        paired.next_binlog_file,
        paired.following.epoch as following_epoch,
        paired.following.binlog_file as following_binlog_file,
        case
            when not paired.is_same_epoch then if(differing_files.binlog_file is null, null, 'other_gtids')
            when not paired.is_contiguous then 'missing_files'
            when paired.is_relay_log then null
            when paired.next_binlog_file != paired.following.binlog_file then 'other_next_file'
            when differing_files.binlog_file is not null then 'other_gtids'
            when
                not paired.has_end
                and paired.is_known
                and (not paired.is_compared or paired.has_anonymous)
                then 'no_end'
        end as defect,
        nullif(differing_files.missing_gtids, '') as missing_gtids,
        nullif(differing_files.unexpected_gtids, '') as unexpected_gtids
    from paired
    left join differing_files
        on
            paired.source_id = differing_files.source_id
            and paired.epoch = differing_files.epoch
            and paired.binlog_file = differing_files.binlog_file

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
