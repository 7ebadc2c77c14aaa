{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        options=lean_parquet_options(),
        meta={'parts': {'model': 'int_chain_files', 'fingerprint': 'fingerprint'}},
    )
}}

{%- set parts = stale_parts() -%}

with

row_events as (

    select * from {{ ref('int_row_events_bound') }}
    where
        reason is null
        and size(primary_key_ordinals) > 0
        and {{ in_files(parts) }}

),

chain_files as (

    select * from {{ ref('int_chain_files') }}

),

-- All other transactions count as they are in the log.
without_effect as (

    select
        {{ transaction_key('file_number', 'start_pos') }} as transaction_key,
        -- A prepared transaction changes rows when it is committed; until then its locks keep others from these rows.
        outcome in ('rollback', 'xa_prepare') and xa_xid is not null as is_prepared,
        outcome in ('rollback', 'xa_prepare') as is_rolled_back,
        rolled_back_ranges
    from {{ ref('int_transactions_resolved') }}
    where
        (outcome in ('rollback', 'xa_prepare') or rolled_back_ranges is not null)
        and row_events > 0
        and {{ in_files(parts) }}

),

keyed as (

    select /*+ broadcast(without_effect) */
        -- See transaction_key.
        shiftright(row_events.transaction_key, 40) as file_number,
        row_events.start_pos,
        row_events.payload_ordinal,
        row_events.row_ordinal,
        xxhash64(row_events.table_version_id) as version_hash,
        xxhash64(
            row_events.source_id,
            row_events.schema_name,
            row_events.table_name,
            transform(row_events.primary_key_ordinals, place -> row_events.column_names[place])
        ) as table_hash,
        -- A rollback is logged only because of tables without transactions: their rows have changed, all others have
        -- not.
        coalesce(
            without_effect.is_rolled_back
            or {{ outcome_of_range('row_events', 'without_effect.rolled_back_ranges') }} = 'unknown',
            false
        ) as is_rolled_back,
        {{ pk_values(
            "if(row_events.event_type = 'INSERT', row_events.after_values, row_events.before_values)",
            'row_events.primary_key_ordinals'
        ) }} as pk_values,
        case
            when row_events.event_type = 'UPDATE'
                then {{ pk_values_after(
                    'row_events.before_values', 'row_events.after_values', 'row_events.after_columns',
                    'row_events.primary_key_ordinals'
                ) }}
        end as pk_values_after,
        row_events.event_type != 'INSERT' as existed_before,
        row_events.event_type != 'DELETE' as exists_after,
        -- An image of nothing but the key proves nothing.
        case
            when
                row_events.event_type != 'INSERT'
                and (
                    row_events.before_columns is null
                    or size(array_except(row_events.before_columns, row_events.primary_key_ordinals)) > 0
                )
                then {{ image_digest('row_events.before_values', 'row_events.before_columns') }}
        end as before_digest,
        case
            when row_events.event_type != 'DELETE'
                then {{ image_digest(
                    values_after('row_events.before_values', 'row_events.after_values', 'row_events.after_columns'),
                    columns_after('row_events.event_type', 'row_events.before_columns', 'row_events.after_columns')
                ) }}
        end as after_digest,
        cast(null as bigint) as no_digest
    from row_events
    left join without_effect on row_events.transaction_key = without_effect.transaction_key
    where
        not coalesce(without_effect.is_prepared, false)
        and coalesce(
            {{ outcome_of_range('row_events', 'without_effect.rolled_back_ranges') }} = 'unknown', true
        )

),

-- An UPDATE that changes the key ends the life of the old key and begins that of the new key.
lives as (

    select
        file_number,
        start_pos,
        payload_ordinal,
        row_ordinal,
        version_hash,
        table_hash,
        is_rolled_back,
        inline(
            if(
                pk_values_after is null,
                array(
                    struct(
                        pk_values as pk,
                        existed_before as existed,
                        exists_after as lives,
                        before_digest as before,
                        after_digest as after
                    )
                ),
                array(
                    struct(
                        pk_values as pk,
                        true as existed,
                        false as lives,
                        before_digest as before,
                        no_digest as after
                    ),
                    struct(
                        pk_values_after as pk,
                        false as existed,
                        true as lives,
                        no_digest as before,
                        after_digest as after
                    )
                )
            )
        ) as (pk_values, existed_before, exists_after, before_digest, after_digest)
    from keyed

),

final as (

    select /*+ broadcast(chain_files) */
        xxhash64(lives.table_hash, lives.pk_values) as key_hash,
        lives.version_hash,
        lives.start_pos,
        lives.payload_ordinal,
        lives.row_ordinal,
        lives.existed_before,
        lives.exists_after,
        lives.is_rolled_back,
        lives.before_digest,
        lives.after_digest,
        chain_files.source_id,
        chain_files.epoch,
        chain_files.binlog_file
    from lives
    inner join chain_files on lives.file_number = chain_files.file_number
    where lives.pk_values is not null

)

select * from final
