with

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

bindings as (

    select * from {{ ref('int_table_map_bindings') }}
    where reason is null

),

final as (

    select
        table_maps.source_id,
        table_maps.schema_name,
        table_maps.table_name,
        table_maps.table_map_id,
        bindings.table_version_id,
        table_maps.column_count,
        size(bindings.column_names) as columns_named
    from table_maps
    inner join bindings
        on
            table_maps.source_id = bindings.source_id
            and table_maps.table_map_id = bindings.table_map_id
    where not table_maps.column_count <=> size(bindings.column_names)

)

select * from final
