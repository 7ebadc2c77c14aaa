with

row_events as (

    select * from {{ ref('stg_binlog__row_events') }}

),

transactions as (

    select * from {{ ref('transactions') }}

),

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

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

-- With a filter on tables, a transaction has rows that were not landed on purpose.
unfiltered as (

    select * from completed_segments
    where table_filter is null

),

compared as (

    select
        coalesce(transactions.source_id, counted.source_id) as source_id,
        coalesce(transactions.epoch, counted.epoch) as epoch,
        coalesce(transactions.binlog_file, counted.binlog_file) as binlog_file,
        coalesce(transactions.segment_start, counted.segment_start) as segment_start,
        coalesce(transactions.start_pos, counted.transaction_pos) as transaction_pos,
        transactions.end_pos,
        transactions.start_pos is not null as has_transaction,
        transactions.row_events as row_events_of_transaction,
        coalesce(counted.row_events, 0) as row_events_landed,
        transactions.inserts <=> coalesce(counted.inserts, 0)
        and transactions.updates <=> coalesce(counted.updates, 0)
        and transactions.deletes <=> coalesce(counted.deletes, 0)
        and transactions.row_events <=> coalesce(counted.row_events, 0) as is_same
    from transactions
    full outer join counted
        on
            transactions.source_id = counted.source_id
            and transactions.epoch = counted.epoch
            and transactions.binlog_file = counted.binlog_file
            and transactions.start_pos = counted.transaction_pos

),

final as (

    select /*+ broadcast(unfiltered), broadcast(unsupported_events) */
        compared.source_id,
        compared.epoch,
        compared.binlog_file,
        compared.transaction_pos,
        compared.row_events_of_transaction,
        compared.row_events_landed,
        compared.has_transaction
    from compared
    inner join unfiltered
        on {{ same_segment('compared', 'unfiltered') }}
    -- Rows that could not be decoded are known to be missing, and listed in undecoded_events.
    left anti join unsupported_events
        on
            compared.source_id = unsupported_events.source_id
            and compared.epoch = unsupported_events.epoch
            and compared.binlog_file = unsupported_events.binlog_file
            and compared.transaction_pos <= unsupported_events.start_pos
            and compared.end_pos > unsupported_events.start_pos
    where not compared.is_same

)

select * from final
