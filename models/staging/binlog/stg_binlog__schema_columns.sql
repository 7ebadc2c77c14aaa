with

landed as (

    select * from {{ source('binlog', 'schema_columns') }}

),

final as (

    -- A snapshot that was landed twice is one snapshot.
    select distinct
        snapshot_id,
        schema_name,
        table_name,
        column_name,
        ordinal_position,
        column_key,
        primary_key_ordinal,
        data_type,
        column_type,
        character_set,
        collation,
        is_nullable,
        column_default,
        is_generated,
        extra,
        column_comment
    from landed

)

select * from final
