{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_chain_files', 'fingerprint': 'window_fingerprint'}},
        pre_hook=[
            'drop table if exists {{ this.schema }}.int_chain_links',
            'drop table if exists {{ this.schema }}.int_chain_links_built_parts',
        ],
    )
}}

{#- The dropped tables are those of an older binloom. Nothing rewrites them, so an erasure would not reach them. -#}
{%- set parts = stale_parts() -%}
{%- set files = files_looked_back_on(parts) -%}

{#- A pair needs a change in a stale file; the changes of all other keys need no order. -#}
{%- set has_other_files = parts is not none and files | length > parts | length -%}
{%- set stale_keys -%}
    select explode(array(xxhash64(pk_values), xxhash64(pk_values_after)))
    from {{ ref('row_changes') }}
    where {{ in_files(parts) }}
{%- endset -%}

with

row_changes as (

    select * from {{ ref('row_changes') }}
    where
        pk_values is not null
        and {{ in_files(files) }}

),

chain_files as (

    select
        *,
        {{ in_files(parts) }} as is_stale
    from {{ ref('int_chain_files') }}
    where {{ in_files(files) }}

),

table_versions as (

    select
        table_version_id,
        xxhash64(table_version_id) as version_hash,
        xxhash64(source_id, schema_name, table_name, primary_key_columns) as table_hash
    from {{ ref('table_versions') }}

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
        and {{ in_files(files) }}

),

keyed as (

    select /*+ broadcast(chain_files), broadcast(table_versions), broadcast(without_effect) */
        chain_files.file_number,
        chain_files.place,
        chain_files.is_stale,
        row_changes.start_pos,
        row_changes.payload_ordinal,
        row_changes.row_ordinal,
        row_changes.event_type,
        row_changes.pk_values,
        row_changes.pk_values_after,
        row_changes.digest_before,
        row_changes.digest_after,
        table_versions.version_hash,
        table_versions.table_hash,
        -- A rollback is logged only because of tables without transactions: their rows have changed, all others have
        -- not.
        coalesce(
            without_effect.is_rolled_back
            or {{ outcome_of_range('row_changes', 'without_effect.rolled_back_ranges') }} = 'unknown',
            false
        ) as is_rolled_back
    from row_changes
    inner join chain_files
        on
            row_changes.source_id = chain_files.source_id
            and row_changes.epoch = chain_files.epoch
            and row_changes.binlog_file = chain_files.binlog_file
    inner join table_versions on row_changes.table_version_id = table_versions.table_version_id
    left join without_effect
        on
            {{ transaction_key('chain_files.file_number', 'row_changes.transaction_pos') }}
            = without_effect.transaction_key
    where
        not coalesce(without_effect.is_prepared, false)
        and coalesce(
            {{ outcome_of_range('row_changes', 'without_effect.rolled_back_ranges') }} = 'unknown', true
        )

),

-- An UPDATE that changes the key ends the life of the old key and begins that of the new key.
lives as (

    select
        file_number,
        place,
        is_stale,
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
                        event_type != 'INSERT' as existed,
                        event_type != 'DELETE' as lives,
                        digest_before as before,
                        digest_after as after
                    )
                ),
                array(
                    struct(
                        pk_values as pk,
                        true as existed,
                        false as lives,
                        digest_before as before,
                        cast(null as bigint) as after
                    ),
                    struct(
                        pk_values_after as pk,
                        false as existed,
                        true as lives,
                        cast(null as bigint) as before,
                        digest_after as after
                    )
                )
            )
        ) as (pk_values, existed_before, exists_after, digest_before, digest_after)
    from keyed

),

links as (

    select
        *,
        xxhash64(table_hash, pk_values) as key_hash
    from lives
    where {{ 'xxhash64(pk_values) in (' ~ stale_keys ~ ')' if has_other_files else 'true' }}

),

neighbours as (

    select
        *,
        lag(
            struct(
                file_number,
                place,
                start_pos,
                payload_ordinal,
                row_ordinal,
                version_hash,
                exists_after,
                is_rolled_back,
                digest_after
            )
        ) over (partition by key_hash order by place, start_pos, payload_ordinal, row_ordinal) as previous
    from links

),

suspects as (

    select *
    from neighbours
    where
        is_stale
        and place - previous.place <= {{ var('chain_lookback_files') }}
        and not is_rolled_back
        and not previous.is_rolled_back
        and (
            existed_before != previous.exists_after
            -- A digest of another version is that of other columns.
            or (digest_before is not null and version_hash != previous.version_hash)
            or digest_before != previous.digest_after
        )

),

final as (

    select /*+ broadcast(own_files), broadcast(previous_files) */
        own_files.file_sequence,
        suspects.start_pos,
        suspects.payload_ordinal,
        suspects.row_ordinal,
        suspects.existed_before,
        struct(
            previous_files.epoch,
            previous_files.binlog_file,
            previous_files.file_sequence,
            suspects.previous.start_pos,
            suspects.previous.payload_ordinal,
            suspects.previous.row_ordinal,
            suspects.previous.exists_after
        ) as previous,
        own_files.source_id,
        own_files.epoch,
        own_files.binlog_file
    from suspects
    inner join chain_files as own_files on suspects.file_number = own_files.file_number
    inner join chain_files as previous_files on suspects.previous.file_number = previous_files.file_number

)

select * from final
