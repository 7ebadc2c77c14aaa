with

landed_files as (

    select * from {{ ref('int_landed_files') }}

),

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

bindings as (

    select * from {{ ref('int_table_map_bindings') }}

),

table_maps_by_file as (

    select
        source_id,
        epoch,
        binlog_file,
        table_map_id,
        min(first_pos) as first_pos,
        max(last_pos) as last_pos
    from row_event_counts
    group by source_id, epoch, binlog_file, table_map_id

),

-- The bindings of a file's table maps over the positions that its rows span.
held_bindings as (

    select
        table_maps_by_file.source_id,
        table_maps_by_file.epoch,
        table_maps_by_file.binlog_file,
        bindings.table_map_id,
        bindings.table_version_id,
        bindings.reason,
        -- Where a binding begins before the rows does not matter.
        case
            when not {{ position_reached(
                'table_maps_by_file.epoch', 'landed_files.file_sequence', 'table_maps_by_file.first_pos',
                'bindings.valid_from'
            ) }}
                then struct(bindings.valid_from_epoch, bindings.valid_from_file_sequence, bindings.valid_from_pos)
        end as valid_from
    from table_maps_by_file
    inner join landed_files
        on
            table_maps_by_file.source_id = landed_files.source_id
            and table_maps_by_file.epoch = landed_files.epoch
            and table_maps_by_file.binlog_file = landed_files.binlog_file
    inner join bindings
        on
            table_maps_by_file.source_id = bindings.source_id
            and table_maps_by_file.table_map_id = bindings.table_map_id
            and {{ holds_for_rows('bindings', 'table_maps_by_file', 'landed_files') }}

),

bindings_by_file as (

    select
        source_id,
        epoch,
        binlog_file,
        array_join(
            array_sort(collect_list(to_json(struct(table_map_id, table_version_id, reason, valid_from)))), ','
        ) as bindings
    from held_bindings
    group by source_id, epoch, binlog_file

),

fingerprinted as (

    select
        landed_files.*,
        row_number() over (
            partition by landed_files.source_id
            order by landed_files.epoch, landed_files.file_sequence, landed_files.binlog_file
        ) as place,
        md5(
            to_json(
                struct(landed_files.with_xa_ends, bindings_by_file.bindings)
            )
        ) as fingerprint
    from landed_files
    left join bindings_by_file
        on
            landed_files.source_id = bindings_by_file.source_id
            and landed_files.epoch = bindings_by_file.epoch
            and landed_files.binlog_file = bindings_by_file.binlog_file

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        file_sequence,
        file_number,
        place,
        fingerprint,
        md5(
            array_join(
                collect_list(fingerprint) over (
                    partition by source_id
                    order by place
                    rows between {{ var('chain_lookback_files') | int }} preceding and current row
                ),
                ','
            )
        ) as window_fingerprint
    from fingerprinted

)

select * from final
