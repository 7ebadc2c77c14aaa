with

snapshot_positions as (

    select * from {{ ref('int_snapshot_positions') }}

),

schema_columns as (

    select * from {{ ref('stg_binlog__schema_columns') }}

),

-- Row images contain every column of a snapshot, including generated columns (stored, virtual, and those that a MariaDB
-- table has without listing them). Neither contains the hidden columns of functional indexes.
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
                    character_set,
                    is_nullable,
                    primary_key_ordinal is not null as is_primary_key
                )
            )
        ) as ordered_columns
    from schema_columns
    group by snapshot_id, schema_name, table_name

),

placed as (

    select
        snapshot_positions.source_id,
        snapshot_tables.schema_name,
        snapshot_tables.table_name,
        -- The time of such a snapshot is unknown, so its range is an assumption; the first assumption is the beginning.
        if(snapshot_positions.pos is null, 'assume', 'observe') as action,
        snapshot_positions.snapshot_id,
        transform(
            snapshot_tables.ordered_columns,
            col -> struct(
                col.column_name as name,
                col.data_type as data_type,
                col.column_type as column_type,
                col.character_set as character_set,
                col.is_nullable as is_nullable,
                col.is_primary_key as is_primary_key
            )
        ) as columns,
        coalesce(snapshot_positions.epoch, -1) as epoch,
        coalesce(snapshot_positions.file_sequence, -1) as file_sequence,
        coalesce(snapshot_positions.pos, -1) as pos,
        snapshot_positions.binlog_file,
        snapshot_positions.taken_at
    from snapshot_positions
    inner join snapshot_tables on snapshot_positions.snapshot_id = snapshot_tables.snapshot_id

),

ranked as (

    select
        *,
        row_number() over (
            partition by source_id, schema_name, table_name, action order by taken_at desc, snapshot_id desc
        ) as newest_first
    from placed

),

-- Only the latest snapshot without a position counts.
final as (

    select * except (newest_first)
    from ranked
    where action = 'observe' or newest_first = 1

)

select * from final
