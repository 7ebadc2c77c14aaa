with

landed as (

    select * from {{ source('binlog', 'schema_keys') }}

),

final as (

    -- A snapshot that was landed twice is one snapshot.
    select distinct
        snapshot_id,
        constraint_name,
        schema_name,
        table_name,
        column_name,
        ordinal_position,
        referenced_schema_name,
        referenced_table_name,
        referenced_column_name,
        update_rule,
        delete_rule,
        prefix_length,
        expression
    from landed

)

select * from final
