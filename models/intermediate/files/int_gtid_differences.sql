{{ config(materialized='ephemeral') }}

with

consecutive_files as (

    select * from {{ ref('int_consecutive_files') }}

),

-- Both sides in one reading of the files: Spark plans and runs each reference to them anew.
sides as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        explode(
            concat(
                transform(
                    concat(
                        {{ gtid_intervals('previous_gtids') }}, coalesce(skipped, array()), coalesce(landed, array())
                    ),
                    one -> named_struct('stem', one.stem, 'low', one.low, 'high', one.high, 'landed', 1, 'said', 0)
                ),
                transform(
                    {{ gtid_intervals('following.previous_gtids') }},
                    one -> named_struct('stem', one.stem, 'low', one.low, 'high', one.high, 'landed', 0, 'said', 1)
                )
            )
        ) as side
    from consecutive_files
    where is_compared

),

steps as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        explode(
            array(
                named_struct(
                    'stem', side.stem,
                    'number', side.low,
                    'landed', side.landed,
                    'said', side.said
                ),
                named_struct(
                    'stem', side.stem,
                    'number', side.high + 1,
                    'landed', -side.landed,
                    'said', -side.said
                )
            )
        ) as step
    from sides

),

summed_steps as (

    select
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        step.stem,
        step.number,
        sum(step.landed) as landed_step,
        sum(step.said) as said_step,
        bool_or(step.landed != 0) as is_of_landed,
        bool_or(step.said != 0) as is_of_said
    from steps
    group by
        source_id,
        epoch,
        binlog_file,
        is_same_epoch,
        step.stem,
        step.number

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
            partition by source_id, epoch, binlog_file, if(stem like '%-', split_part(stem, '-', 1), stem)
        )

),

final as (

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

)

select * from final
