with

transactions as (

    select * from {{ ref('stg_binlog__transactions') }}
    where xa_xid is not null

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

-- An identifier is free again only when its transaction has ended, so the next transaction with the same identifier is
-- the end. If the end is not landed, it is another transaction, which has more events than its GTID and its commit. Row
-- events do not tell: with a table filter they are not counted, and some cannot be decoded.
followed as (

    select /*+ broadcast(completed_segments) */
        transactions.*,
        lead(
            struct(
                concat_ws(
                    '/', transactions.source_id, transactions.epoch, transactions.binlog_file, transactions.start_pos
                ) as transaction_id,
                transactions.outcome,
                transactions.events,
                transactions.committed_at,
                transactions.original_committed_at
            )
        ) over (
            partition by transactions.source_id, transactions.xa_xid
            order by transactions.epoch, completed_segments.file_sequence, transactions.start_pos
        ) as following
    from transactions
    inner join completed_segments
        on {{ same_segment('transactions', 'completed_segments') }}

),

prepared as (

    select
        *,
        case when following.outcome in ('commit', 'rollback') and following.events <= 2 then following end as xa_end
    from followed
    where outcome = 'xa_prepare'

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        xa_xid,
        xa_end.transaction_id as xa_end_transaction_id,
        coalesce(xa_end.outcome, outcome) as outcome,
        case when xa_end.outcome = 'commit' then xa_end.committed_at end as committed_at,
        case when xa_end.outcome = 'commit' then xa_end.original_committed_at end as original_committed_at
    from prepared

)

select * from final
