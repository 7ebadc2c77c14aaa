with

landed as (

    select * from {{ source('binlog', 'erasures') }}

),

final as (

    select
        erasure_id,
        source_id,
        schema_name,
        table_name,
        epoch,
        binlog_file,
        selection_hash,
        row_events,
        erased_statements,
        row_count,
        recorded_at,
        erased_by,
        erasure_reason
    from landed

)

select * from final
