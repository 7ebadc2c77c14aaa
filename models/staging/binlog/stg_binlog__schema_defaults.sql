with

landed as (

    select * from {{ source('binlog', 'schema_defaults') }}

),

final as (

    -- A snapshot that was landed twice is one snapshot.
    select distinct
        snapshot_id,
        schema_name,
        table_name,
        character_set,
        collation
    from landed

)

select * from final
