{{ config(materialized='view') }}

with

transactions as (

    select * from {{ ref('stg_binlog__transactions') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

xa_transactions as (

    select * from {{ ref('int_xa_transactions') }}

),

final as (

    select /*+ broadcast(completed_segments) */
        transactions.source_id,
        transactions.epoch,
        transactions.binlog_file,
        transactions.segment_start,
        transactions.start_pos,
        transactions.end_pos,
        transactions.gtid,
        transactions.xid,
        transactions.xa_xid,
        xa_transactions.xa_end_transaction_id,
        transactions.thread_id,
        transactions.server_id,
        coalesce(xa_transactions.outcome, transactions.outcome) as outcome,
        completed_segments.file_sequence,
        completed_segments.file_number,
        transactions.events,
        transactions.row_events,
        transactions.inserts,
        transactions.updates,
        transactions.deletes,
        transactions.rolled_back_ranges,
        transactions.is_ddl,
        transactions.started_at,
        if(
            transactions.outcome = 'xa_prepare',
            xa_transactions.committed_at,
            transactions.committed_at
        ) as committed_at,
        if(
            transactions.outcome = 'xa_prepare',
            xa_transactions.original_committed_at,
            transactions.original_committed_at
        ) as original_committed_at,
        completed_segments.landed_at
    from transactions
    inner join completed_segments
        on {{ same_segment('transactions', 'completed_segments') }}
    left join xa_transactions
        on
            transactions.source_id = xa_transactions.source_id
            and transactions.epoch = xa_transactions.epoch
            and transactions.binlog_file = xa_transactions.binlog_file
            and transactions.start_pos = xa_transactions.start_pos

)

select * from final
