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
        case
            when row_events.event_type != 'INSERT'
                then {{ column_hashes('row_events.before_values', 'row_events.before_columns') }}
        end as before_hashes,
        case
            when row_events.event_type != 'DELETE'
                then {{ column_hashes_after(
                    'row_events.before_values', 'row_events.after_values', 'row_events.before_columns',
                    'row_events.after_columns'
                ) }}
        end as after_hashes,
        cast(null as array<int>) as no_hashes,
        transform(
            row_events.masked_columns, masked -> struct(masked.column_name as name, masked.fingerprint)
        ) as masks
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
        masks,
        inline(
            if(
                pk_values_after is null,
                array(named_struct('key', pk_values, 'before', before_hashes, 'after', after_hashes)),
                array(
                    named_struct('key', pk_values, 'before', before_hashes, 'after', no_hashes),
                    named_struct('key', pk_values_after, 'before', no_hashes, 'after', after_hashes)
                )
            )
        ) as (pk_values, before_hashes, after_hashes)
    from keyed

),

links as (

    select
        file_number,
        start_pos,
        payload_ordinal,
        row_ordinal,
        version_hash,
        xxhash64(table_hash, pk_values) as key_hash,
        is_rolled_back,
        masks,
        pk_values,
        before_hashes,
        after_hashes,
        before_hashes is not null as existed_before,
        after_hashes is not null as exists_after
    from lives
    where pk_values is not null

),

neighbours as (

    select
        *,
        lag(
            struct(
                start_pos,
                payload_ordinal,
                row_ordinal,
                version_hash,
                after_hashes,
                exists_after,
                is_rolled_back,
                masks
            )
        ) over (partition by key_hash, file_number order by start_pos, payload_ordinal, row_ordinal) as previous,
        lead(true) over (
            partition by key_hash, file_number order by start_pos, payload_ordinal, row_ordinal
        ) is null as is_last
    from links

),

judged as (

    select
        *,
        previous is null as is_first,
        {{ breaks_the_chain('', 'previous') }} as is_break
    from neighbours

),

final as (

    select /*+ broadcast(chain_files) */
        judged.key_hash,
        judged.pk_values,
        judged.version_hash,
        judged.start_pos,
        judged.payload_ordinal,
        judged.row_ordinal,
        judged.existed_before,
        judged.exists_after,
        judged.is_rolled_back,
        judged.masks,
        judged.is_first,
        judged.is_last,
        if(judged.is_first or judged.is_break, judged.before_hashes, null) as before_hashes,
        if(judged.is_last, judged.after_hashes, null) as after_hashes,
        if(judged.is_break, judged.previous, null) as previous,
        chain_files.source_id,
        chain_files.epoch,
        chain_files.binlog_file
    from judged
    inner join chain_files on judged.file_number = chain_files.file_number
    where judged.is_first or judged.is_last or judged.is_break

)

select * from final
