{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_landed_files', 'fingerprint': 'segments', 'has_rows': 'transactions > 0'}},
    )
}}

{%- set parts = stale_parts() -%}

-- depends_on: {{ ref('int_landed_files') }}

with

transactions as (

    select * from {{ ref('stg_binlog__transactions') }}
    where {{ in_files(parts) }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

-- The number is after the last colon of MySQL's uuid:tag:number, and after the last dash of MariaDB's
-- domain-server-number.
numbered as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        regexp_extract(gtid, '^(.*[:-])[0-9]+$', 1) as gtid_stem,
        cast(split_part(gtid, if(gtid like '%:%', ':', '-'), -1) as bigint) as number
    from transactions

),

ranked as (

    select
        *,
        -- Equal for all consecutive numbers.
        number - dense_rank() over (
            partition by source_id, epoch, binlog_file, segment_start, gtid_stem order by number
        ) as island
    from numbered

),

ranges as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        gtid_stem,
        min(number) as first_number,
        max(number) as last_number,
        count(*) as transactions
    from ranked
    group by
        source_id,
        epoch,
        binlog_file,
        segment_start,
        gtid_stem,
        island

),

final as (

    select
        ranges.segment_start,
        ranges.gtid_stem,
        ranges.first_number,
        ranges.last_number,
        ranges.transactions,
        completed_segments.landed_at,
        ranges.source_id,
        ranges.epoch,
        ranges.binlog_file
    from ranges
    inner join completed_segments
        on {{ same_segment('ranges', 'completed_segments') }}

)

select * from final
