with

landed as (

    select * from {{ source('binlog', 'baselines') }}

),

final as (

    select
        baseline_id,
        source_id,
        schema_name,
        table_name,
        column_names,
        primary_key_ordinals,
        row_count,
        origin,
        snapshot_id,
        binlog_file,
        binlog_pos,
        gtid_executed,
        taken_at,
        recorded_at,
        masked_columns,
        coalesce(is_complete, true) as is_complete,
        position_proof
    from landed

)

select * from final
