with

landed as (

    select * from {{ source('binlog', 'table_maps') }}

),

ranked as (

    select
        *,
        -- Each segment that contains a table map lands it; the identifier is a hash of the whole content of the copies.
        row_number() over (partition by source_id, table_map_id order by column_count) as copy
    from landed

),

final as (

    select
        table_map_id,
        source_id,
        schema_name,
        table_name,
        column_count,
        columns,
        hint,
        unknown_hints,
        masked_columns
    from ranked
    where copy = 1

)

select * from final
