with

schema_snapshots as (

    select * from {{ ref('stg_binlog__schema_snapshots') }}

),

schema_columns as (

    select * from {{ ref('stg_binlog__schema_columns') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

sources as (

    select * from {{ ref('stg_binlog__sources') }}

),

-- A snapshot that was not taken by `binloom follow` names the file and not the epoch. After a failover two epochs have
-- files of the same name: it is the one that was being written when the snapshot was taken.
epochs_by_file as (

    select
        schema_snapshots.source_id,
        schema_snapshots.snapshot_id,
        max_by(binlog_files.epoch, struct(binlog_files.first_event_at, binlog_files.epoch)) as epoch
    from schema_snapshots
    inner join binlog_files
        on
            schema_snapshots.source_id = binlog_files.source_id
            and schema_snapshots.binlog_file = binlog_files.binlog_file
            and schema_snapshots.taken_at >= binlog_files.first_event_at
    group by schema_snapshots.source_id, schema_snapshots.snapshot_id

),

-- A file that has not been landed: the epoch that was open by then.
epochs_by_time as (

    select
        schema_snapshots.source_id,
        schema_snapshots.snapshot_id,
        max(sources.epoch) filter (where sources.opened_at <= schema_snapshots.taken_at) as open_epoch,
        min(sources.epoch) as first_epoch
    from schema_snapshots
    inner join sources on schema_snapshots.source_id = sources.source_id
    group by schema_snapshots.source_id, schema_snapshots.snapshot_id

),

snapshot_positions as (

    select
        schema_snapshots.source_id,
        schema_snapshots.snapshot_id,
        schema_snapshots.taken_at,
        case
            when schema_snapshots.binlog_pos is not null
                then coalesce(
                    schema_snapshots.epoch,
                    epochs_by_file.epoch,
                    epochs_by_time.open_epoch,
                    epochs_by_time.first_epoch,
                    0
                )
        end as epoch,
        case when schema_snapshots.binlog_pos is not null then schema_snapshots.binlog_file end as binlog_file,
        case
            when schema_snapshots.binlog_pos is not null then {{ file_sequence('schema_snapshots.binlog_file') }}
        end as file_sequence,
        schema_snapshots.binlog_pos as pos
    from schema_snapshots
    left join epochs_by_file
        on
            schema_snapshots.source_id = epochs_by_file.source_id
            and schema_snapshots.snapshot_id = epochs_by_file.snapshot_id
    left join epochs_by_time
        on
            schema_snapshots.source_id = epochs_by_time.source_id
            and schema_snapshots.snapshot_id = epochs_by_time.snapshot_id

),

-- Every column of a snapshot stands in the row images, generated ones too (stored and virtual, and those that a
-- table of MariaDB has without listing them). The hidden columns of functional indexes stand in neither.
-- Ordinals are renumbered from 0, as the images count them.
snapshot_tables as (

    select
        snapshot_id,
        schema_name,
        table_name,
        array_sort(
            collect_list(
                struct(
                    ordinal_position,
                    column_name,
                    lower(data_type) as data_type,
                    column_type,
                    primary_key_ordinal is not null as is_primary_key
                )
            )
        ) as ordered_columns
    from schema_columns
    group by snapshot_id, schema_name, table_name

),

from_snapshots as (

    select
        snapshot_positions.source_id,
        snapshot_tables.schema_name,
        snapshot_tables.table_name,
        'snapshot' as evidence,
        snapshot_tables.snapshot_id as evidence_id,
        transform(
            snapshot_tables.ordered_columns,
            (col, place) -> struct(
                place as ordinal,
                col.column_name as name,
                col.data_type as data_type,
                col.column_type as column_type,
                col.is_primary_key as is_primary_key
            )
        ) as columns,
        snapshot_positions.epoch,
        snapshot_positions.binlog_file,
        snapshot_positions.file_sequence,
        snapshot_positions.pos,
        snapshot_positions.taken_at
    from snapshot_positions
    inner join snapshot_tables on snapshot_positions.snapshot_id = snapshot_tables.snapshot_id

),

-- binlog_row_metadata=FULL: each table map says the names itself, and is right wherever it stands.
from_table_maps as (

    select
        source_id,
        schema_name,
        table_name,
        'table_map' as evidence,
        table_map_id as evidence_id,
        transform(
            columns,
            col -> struct(
                col.ordinal as ordinal,
                col.name as name,
                lower(col.type) as data_type,
                concat_ws(
                    ' ', lower(col.type), cast(col.metadata as string), if(col.is_unsigned, 'unsigned', null)
                ) as column_type,
                coalesce(col.is_primary_key, false) as is_primary_key
            )
        ) as columns,
        cast(null as int) as epoch,
        cast(null as string) as binlog_file,
        cast(null as bigint) as file_sequence,
        cast(null as bigint) as pos,
        cast(null as timestamp) as taken_at
    from table_maps
    where
        column_count > 0
        and not exists(columns, col -> col.name is null)

),

unioned as (

    select * from from_snapshots
    union all
    select * from from_table_maps

),

final as (

    select
        -- The definition itself, so that the same one keeps its identifier whatever else is found out later.
        md5(
            concat_ws('/', evidence, source_id, to_json(struct(schema_name, table_name, columns)))
        ) as table_version_id,
        source_id,
        evidence,
        evidence_id,
        schema_name,
        table_name,
        cast(size(columns) as int) as column_count,
        columns,
        transform(columns, col -> col.name) as column_names,
        transform(filter(columns, col -> col.is_primary_key), col -> col.ordinal) as primary_key_ordinals,
        epoch,
        binlog_file,
        file_sequence,
        pos,
        taken_at
    from unioned

)

select * from final
