with

bindings as (

    select * from {{ ref('stg_binlog__table_bindings') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

final as (

    select
        bindings.source_id,
        bindings.table_map_id,
        bindings.table_version_id,
        bindings.schema_name,
        bindings.table_name,
        bindings.column_count,
        bindings.column_names,
        bindings.primary_key_ordinals,
        bindings.confidence,
        bindings.reason,
        bindings.detail,
        table_maps.unknown_hints,
        table_maps.masked_columns,
        bindings.valid_from_epoch,
        bindings.valid_from_file_sequence,
        bindings.valid_from_pos,
        bindings.valid_to_epoch,
        bindings.valid_to_file_sequence,
        bindings.valid_to_pos
    from bindings
    inner join table_maps
        on
            bindings.source_id = table_maps.source_id
            and bindings.table_map_id = table_maps.table_map_id

)

select * from final
