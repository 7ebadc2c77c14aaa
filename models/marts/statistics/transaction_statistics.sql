{{ config(materialized='view') }}

with

transactions as (

    select * from {{ ref('transactions') }}

),

row_changes as (

    select * from {{ ref('row_changes') }}

),

tables as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos,
        concat_ws('.', schema_name, table_name) as table_name,
        count(*) as changes
    from row_changes
    group by source_id, epoch, binlog_file, transaction_pos, schema_name, table_name

),

tables_by_transaction as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos,
        map_from_entries(array_sort(collect_list(struct(table_name, changes)))) as changes_by_table,
        max_by(table_name, struct(changes, table_name)) as largest_table
    from tables
    group by source_id, epoch, binlog_file, transaction_pos

),

final as (

    select
        transactions.transaction_id,
        transactions.source_id,
        transactions.epoch,
        transactions.binlog_file,
        transactions.file_sequence,
        transactions.start_pos,
        transactions.gtid,
        transactions.thread_id,
        transactions.outcome,
        tables_by_transaction.largest_table,
        tables_by_transaction.changes_by_table,
        transactions.row_events,
        transactions.inserts,
        transactions.updates,
        transactions.deletes,
        transactions.end_pos - transactions.start_pos as bytes_in_file,
        case
            when {{ plausible_duration() }}
                then
                    (unix_micros(transactions.committed_at) - unix_micros(transactions.started_at)) / 1e6
        end as seconds,
        coalesce({{ plausible_duration() }}, true) as is_plausible,
        transactions.started_at,
        transactions.committed_at
    from transactions
    left join tables_by_transaction
        on
            transactions.source_id = tables_by_transaction.source_id
            and transactions.epoch = tables_by_transaction.epoch
            and transactions.binlog_file = tables_by_transaction.binlog_file
            and transactions.start_pos = tables_by_transaction.transaction_pos

)

select * from final
