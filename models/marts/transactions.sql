{{
    config(
        materialized='parts',
        on_schema_change='append_new_columns',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_landed_files', 'fingerprint': 'with_xa_ends', 'has_rows': 'transactions > 0'}},
    )
}}

{%- set parts = stale_parts() -%}

-- depends_on: {{ ref('int_landed_files') }}

with

transactions as (

    select * from {{ ref('int_transactions_resolved') }}
    where {{ in_files(parts) }}

),

final as (

    select
        concat_ws('/', source_id, epoch, binlog_file, start_pos) as transaction_id,
        segment_start,
        file_sequence,
        start_pos,
        end_pos,
        gtid,
        xid,
        xa_xid,
        xa_end_transaction_id,
        thread_id,
        server_id,
        outcome,
        events,
        row_events,
        inserts,
        updates,
        deletes,
        rolled_back_ranges,
        is_ddl,
        started_at,
        committed_at,
        original_committed_at,
        landed_at,
        source_id,
        epoch,
        binlog_file
    from transactions

)

select * from final
