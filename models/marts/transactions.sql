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

statements as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos,
        digest,
        tags,
        struct(start_pos, payload_ordinal) as place
    from {{ ref('stg_binlog__statements') }}
    where
        digest is not null
        and {{ in_files(parts) }}

),

distinct_statements as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos,
        digest,
        min(place) as first_place,
        min(place) filter (where tags is not null) as first_tagged_place,
        min_by(tags, place) filter (where tags is not null) as first_tags
    from statements
    group by source_id, epoch, binlog_file, transaction_pos, digest

),

digests as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos,
        transform(array_sort(collect_list(struct(first_place, digest))), used -> used.digest) as digests,
        min_by(first_tags, first_tagged_place) filter (where first_tags is not null) as tags
    from distinct_statements
    group by source_id, epoch, binlog_file, transaction_pos

),

final as (

    select
        concat_ws(
            '/', transactions.source_id, transactions.epoch, transactions.binlog_file, transactions.start_pos
        ) as transaction_id,
        transactions.segment_start,
        transactions.file_sequence,
        transactions.start_pos,
        transactions.end_pos,
        transactions.gtid,
        transactions.xid,
        transactions.xa_xid,
        transactions.xa_end_transaction_id,
        transactions.thread_id,
        transactions.server_id,
        transactions.outcome,
        transactions.events,
        transactions.row_events,
        transactions.inserts,
        transactions.updates,
        transactions.deletes,
        transactions.rolled_back_ranges,
        transactions.is_ddl,
        transactions.started_at,
        transactions.committed_at,
        transactions.original_committed_at,
        transactions.landed_at,
        digests.digests,
        digests.tags,
        transactions.source_id,
        transactions.epoch,
        transactions.binlog_file
    from transactions
    left join digests
        on
            transactions.source_id = digests.source_id
            and transactions.epoch = digests.epoch
            and transactions.binlog_file = digests.binlog_file
            and transactions.start_pos = digests.transaction_pos

)

select * from final
