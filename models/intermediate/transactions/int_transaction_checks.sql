{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_landed_files', 'fingerprint': 'segments', 'has_rows': 'transactions + row_events > 0'}},
    )
}}

{%- set parts = stale_parts() -%}

-- depends_on: {{ ref('int_landed_files') }}

with

row_events as (

    select * from {{ ref('stg_binlog__row_events') }}
    where {{ in_files(parts) }}

),

transactions as (

    select
        *,
        count(*) over (partition by source_id, epoch, binlog_file, start_pos) as occurrences
    from {{ ref('stg_binlog__transactions') }}
    where {{ in_files(parts) }}

),

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}
    where {{ in_files(parts) }}

),

undecoded_by_file as (

    select
        source_id,
        epoch,
        binlog_file,
        collect_list(start_pos) as positions
    from unsupported_events
    group by source_id, epoch, binlog_file

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}
    where {{ in_files(parts) }}

),

counted as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        transaction_pos,
        count(*) as row_events,
        count_if(event_type = 'INSERT') as inserts,
        count_if(event_type = 'UPDATE') as updates,
        count_if(event_type = 'DELETE') as deletes
    from row_events
    group by
        source_id,
        epoch,
        binlog_file,
        segment_start,
        transaction_pos

),

compared as (

    select
        coalesce(transactions.source_id, counted.source_id) as source_id,
        coalesce(transactions.epoch, counted.epoch) as epoch,
        coalesce(transactions.binlog_file, counted.binlog_file) as binlog_file,
        coalesce(transactions.segment_start, counted.segment_start) as segment_start,
        coalesce(transactions.start_pos, counted.transaction_pos) as transaction_pos,
        transactions.end_pos,
        transactions.gtid,
        transactions.outcome,
        transactions.start_pos is not null as has_transaction,
        transactions.row_events as row_events_of_transaction,
        coalesce(counted.row_events, 0) as row_events_landed,
        coalesce(
            transactions.inserts = coalesce(counted.inserts, 0)
            and transactions.updates = coalesce(counted.updates, 0)
            and transactions.deletes = coalesce(counted.deletes, 0)
            and transactions.row_events = coalesce(counted.row_events, 0),
            false
        ) as has_all_row_events,
        coalesce(transactions.occurrences > 1, false) as is_landed_twice
    from transactions
    full outer join counted
        on
            transactions.source_id = counted.source_id
            and transactions.epoch = counted.epoch
            and transactions.binlog_file = counted.binlog_file
            and transactions.start_pos = counted.transaction_pos

),

suspects as (

    select /*+ broadcast(undecoded_by_file) */
        compared.*,
        coalesce(
            exists(
                undecoded_by_file.positions,
                undecoded_pos -> compared.transaction_pos <= undecoded_pos and compared.end_pos > undecoded_pos
            ),
            false
        ) as has_undecoded_events
    from compared
    left join undecoded_by_file
        on
            compared.source_id = undecoded_by_file.source_id
            and compared.epoch = undecoded_by_file.epoch
            and compared.binlog_file = undecoded_by_file.binlog_file
    where not compared.has_all_row_events or compared.outcome = 'none' or compared.is_landed_twice

),

-- Events of a transaction that could not be decoded are known to be missing; undecoded_events lists them. They do not
-- explain a transaction without an end.
findings as (

    select
        * except (has_all_row_events, has_undecoded_events),
        if(has_undecoded_events, cast(null as boolean), has_all_row_events) as has_all_row_events
    from suspects
    where not has_undecoded_events or outcome = 'none' or is_landed_twice

),

-- A segment without findings has a row too, as a record that it was checked.
final as (

    select
        completed_segments.segment_start,
        findings.transaction_pos,
        findings.end_pos,
        findings.gtid,
        findings.outcome,
        findings.has_transaction,
        findings.row_events_of_transaction,
        findings.row_events_landed,
        findings.has_all_row_events,
        findings.is_landed_twice,
        completed_segments.table_filter,
        completed_segments.landed_at,
        completed_segments.source_id,
        completed_segments.epoch,
        completed_segments.binlog_file
    from completed_segments
    left join findings
        on {{ same_segment('completed_segments', 'findings') }}
    where completed_segments.transactions + completed_segments.row_events > 0

)

select * from final
