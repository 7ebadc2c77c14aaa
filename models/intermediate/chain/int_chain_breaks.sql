{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_chain_files', 'fingerprint': 'window_fingerprint'}},
    )
}}

{%- set parts = stale_parts() -%}
{%- set files = files_looked_back_on(parts) -%}

with

chain_links as (

    select * from {{ ref('int_chain_links') }}
    where {{ in_files(files) }}

),

chain_files as (

    select
        source_id,
        epoch,
        binlog_file,
        file_sequence,
        place,
        {{ in_files(parts) }} as is_stale
    from {{ ref('int_chain_files') }}
    where {{ in_files(files) }}

),

row_removals as (

    select * from {{ ref('int_row_removals') }}
    where {{ in_files(files) }}

),

table_versions as (

    select
        source_id,
        schema_name,
        table_name,
        table_version_id,
        xxhash64(table_version_id) as version_hash,
        column_names,
        transform(columns, col -> concat(col.name, ' ', col.column_type)) as typed_names
    from {{ ref('table_versions') }}

),

-- A pair needs a first image of a stale file; the ends of all other rows need no order.
keys_of_stale_files as (

    select key_hash from {{ ref('int_chain_links') }}
    where is_first and {{ in_files(parts) }}

),

placed as (

    select /*+ broadcast(chain_files) */
        chain_links.*,
        chain_files.file_sequence,
        chain_files.place,
        chain_files.is_stale
    from chain_links
    inner join chain_files
        on
            chain_links.source_id = chain_files.source_id
            and chain_links.epoch = chain_files.epoch
            and chain_links.binlog_file = chain_files.binlog_file

),

ends as (

    select
        *,
        lag(
            struct(
                epoch,
                binlog_file,
                file_sequence,
                place,
                start_pos,
                payload_ordinal,
                row_ordinal,
                version_hash,
                after_hashes,
                exists_after,
                is_rolled_back,
                masks
            )
        ) over (partition by key_hash order by place, start_pos, payload_ordinal, row_ordinal) as preceding
    from placed
    where
        (is_first or is_last)
        and key_hash in (select keys_of_stale_files.key_hash from keys_of_stale_files)

),

pairs as (

    select
        * except (previous, preceding),
        preceding as previous
    from ends
    where
        is_first
        and is_stale
        and place - preceding.place <= {{ var('chain_lookback_files') }}
        and {{ breaks_the_chain('', 'preceding') }}

    union all

    select
        * except (previous),
        struct(
            epoch,
            binlog_file,
            file_sequence,
            place,
            previous.start_pos,
            previous.payload_ordinal,
            previous.row_ordinal,
            previous.version_hash,
            previous.after_hashes,
            previous.exists_after,
            previous.is_rolled_back,
            previous.masks
        ) as previous
    from placed
    where previous is not null and is_stale

),

named as (

    select /*+ broadcast(mine), broadcast(theirs) */
        pairs.*,
        mine.schema_name,
        mine.table_name,
        mine.table_version_id,
        theirs.table_version_id as previous_table_version_id,
        struct(pairs.epoch, pairs.file_sequence, pairs.start_pos) as position,
        struct(pairs.previous.epoch, pairs.previous.file_sequence, pairs.previous.start_pos) as previous_position,
        case
            when pairs.existed_before and not pairs.previous.exists_after then 'not_inserted'
            when not pairs.existed_before and pairs.previous.exists_after then 'not_deleted'
            else 'values_differ'
        end as defect,
        -- Columns of two versions are the same when they have the same name and type.
        case
            when pairs.existed_before and pairs.previous.exists_after
                then filter(
                    mine.column_names,
                    (name, place) -> pairs.before_hashes[place] != get(
                        pairs.previous.after_hashes,
                        cast(array_position(theirs.typed_names, mine.typed_names[place]) as int) - 1
                    )
                    -- Images with different masks do not show whether the value is the same.
                    and filter(coalesce(pairs.masks, array()), masked -> masked.name = name)
                    = filter(coalesce(pairs.previous.masks, array()), masked -> masked.name = name)
                )
        end as differing_columns
    from pairs
    inner join table_versions as mine on pairs.version_hash = mine.version_hash
    inner join table_versions as theirs on pairs.previous.version_hash = theirs.version_hash

),

removals_by_table as (

    select /*+ broadcast(chain_files) */
        row_removals.source_id,
        row_removals.schema_name,
        row_removals.table_name,
        collect_list(struct(row_removals.epoch, chain_files.file_sequence, row_removals.start_pos)) as positions
    from row_removals
    inner join chain_files
        on
            row_removals.source_id = chain_files.source_id
            and row_removals.epoch = chain_files.epoch
            and row_removals.binlog_file = chain_files.binlog_file
    group by row_removals.source_id, row_removals.schema_name, row_removals.table_name

),

alive as (

    select /*+ broadcast(removals_by_table) */ named.*
    from named
    left join removals_by_table
        on
            named.source_id = removals_by_table.source_id
            and named.schema_name = removals_by_table.schema_name
            and named.table_name = removals_by_table.table_name
    where
        (named.differing_columns is null or size(named.differing_columns) > 0)
        and not coalesce(
            exists(
                removals_by_table.positions,
                removed -> removed > named.previous_position and removed < named.position
            ),
            false
        )

),

final as (

    select
        concat_ws('/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal) as change_id,
        concat_ws(
            '/', source_id, previous.epoch, previous.binlog_file, previous.start_pos, previous.payload_ordinal,
            previous.row_ordinal
        ) as previous_change_id,
        schema_name,
        table_name,
        pk_values,
        defect,
        differing_columns,
        table_version_id,
        previous_table_version_id,
        file_sequence,
        start_pos,
        previous.epoch as previous_epoch,
        previous.binlog_file as previous_binlog_file,
        previous.file_sequence as previous_file_sequence,
        previous.start_pos as previous_start_pos,
        source_id,
        epoch,
        binlog_file
    from alive

)

select * from final
