{%- set repeating_columns = [
    'file_sequence', 'outcome', 'event_type', 'schema_name', 'table_name', 'table_version_id', 'binding_confidence',
] -%}
{%- set filtered_columns = [
    'file_sequence', 'start_pos', 'transaction_pos', 'event_timestamp', 'schema_name', 'table_name',
    'pk_values_after',
] -%}
{{
    config(
        materialized='parts',
        on_schema_change='append_new_columns',
        partition_by=['event_hour', 'source_id', 'epoch', 'binlog_file', 'file_part'],
        meta={'parts': {'model': 'int_row_change_parts', 'has_rows': 'has_bound_rows'}},
        options=lean_parquet_options(repeating_columns, filtered_columns, ['pk_hash']),
        pre_hook="set spark.sql.maxConcurrentOutputFileWriters = 8",
    )
}}

{%- set parts = stale_parts() -%}

-- depends_on: {{ ref('int_row_change_parts') }}, {{ ref('int_completed_segments') }}

with

row_events as (

    select * from {{ ref('int_row_events_bound') }}
    where
        reason is null
        and {{ in_files(parts) }}
        and {{ in_parts(parts) }}

),

transactions as (

    select
        {{ transaction_key('file_number', 'start_pos') }} as transaction_key,
        committed_at,
        thread_id,
        outcome,
        rolled_back_ranges
    from {{ ref('int_transactions_resolved') }}
    where {{ in_files(parts) }}

),

keyed as (

    select {{ transactions_hint('transactions', parts) }}
        row_events.*,
        transactions.committed_at,
        transactions.thread_id,
        coalesce(
            {{ outcome_of_range('row_events', 'transactions.rolled_back_ranges') }}, transactions.outcome
        ) as outcome,
        {{ pk_values(
            "if(row_events.event_type = 'INSERT', row_events.after_values, row_events.before_values)",
            'row_events.primary_key_ordinals'
        ) }} as pk_values
    from row_events
    left join transactions on row_events.transaction_key = transactions.transaction_key

),

final as (

    select
        concat_ws(
            '/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal
        ) as change_id,
        file_sequence,
        start_pos,
        end_pos,
        payload_ordinal,
        row_ordinal,
        transaction_pos,
        gtid,
        event_timestamp,
        committed_at,
        outcome,
        event_type,
        schema_name,
        table_name,
        pk_values,
        sha2(pk_values, 256) as pk_hash,
        case
            when event_type = 'UPDATE'
                then {{ pk_values_after(
                    'before_values', 'after_values', 'after_columns', 'primary_key_ordinals'
                ) }}
        end as pk_values_after,
        case
            when event_type = 'UPDATE'
                then {{ changed_columns(
                    'column_names', 'before_values', 'after_values', 'before_columns', 'after_columns',
                    'undecoded_columns'
                ) }}
        end as changed_columns,
        case
            when event_type != 'INSERT' then {{ row_image('column_names', 'before_values', 'before_columns') }}
        end as row_before,
        case
            when event_type != 'DELETE' then {{ row_image('column_names', 'after_values', 'after_columns') }}
        end as row_after,
        transform(undecoded_columns, place -> column_names[place]) as undecoded_columns,
        transform(
            json_changes,
            change -> named_struct(
                'column_name', column_names[change.column_ordinal],
                'operation', change.operation,
                'path', change.path,
                'value', change.value
            )
        ) as json_changes,
        -- The proof of the chain compares digests. An image of nothing but the key proves nothing.
        case
            when
                event_type != 'INSERT'
                and size(primary_key_ordinals) > 0
                and (before_columns is null or size(array_except(before_columns, primary_key_ordinals)) > 0)
                then {{ image_digest('before_values', 'before_columns') }}
        end as digest_before,
        case
            when event_type != 'DELETE' and size(primary_key_ordinals) > 0
                then {{ image_digest(
                    values_after('before_values', 'after_values', 'after_columns'),
                    columns_after('event_type', 'before_columns', 'after_columns')
                ) }}
        end as digest_after,
        table_version_id,
        binding_confidence,
        thread_id,
        server_id,
        event_hour,
        source_id,
        epoch,
        binlog_file,
        file_part
    from keyed

)

select * from final
