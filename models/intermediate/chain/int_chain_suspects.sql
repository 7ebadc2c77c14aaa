{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_chain_files', 'fingerprint': 'window_fingerprint'}},
    )
}}

{%- set parts = stale_parts() -%}
{%- set files = files_looked_back_on(parts) -%}

{#- A pair needs a link of a stale file; the links of all other keys need no order. -#}
{%- set has_other_files = parts is not none and files | length > parts | length -%}
{%- set stale_keys = 'select key_hash from ' ~ ref('int_chain_links') ~ ' where ' ~ in_files(parts) -%}

with

chain_links as (

    select * from {{ ref('int_chain_links') }}
    where
        {{ in_files(files) }}
        and {{ 'key_hash in (' ~ stale_keys ~ ')' if has_other_files else 'true' }}

),

chain_files as (

    select
        *,
        {{ in_files(parts) }} as is_stale
    from {{ ref('int_chain_files') }}
    where {{ in_files(files) }}

),

placed as (

    select /*+ broadcast(chain_files) */
        chain_links.* except (source_id, epoch, binlog_file),
        chain_files.file_number,
        chain_files.place,
        chain_files.is_stale
    from chain_links
    inner join chain_files
        on
            chain_links.source_id = chain_files.source_id
            and chain_links.epoch = chain_files.epoch
            and chain_links.binlog_file = chain_files.binlog_file

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
                after_digest
            )
        ) over (partition by key_hash order by place, start_pos, payload_ordinal, row_ordinal) as previous
    from placed

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
            or (before_digest is not null and version_hash != previous.version_hash)
            or before_digest != previous.after_digest
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
