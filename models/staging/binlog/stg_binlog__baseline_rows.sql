with

landed as (

    select * from {{ source('binlog', 'baseline_rows') }}

),

baselines as (

    select * from {{ ref('stg_binlog__baselines') }}

),

final as (

    select /*+ broadcast(baselines) */
        landed.baseline_id,
        landed.source_id,
        landed.schema_name,
        landed.table_name,
        landed.row_number,
        landed.row_values,
        landed.known_columns
    from landed
    -- Without its record a baseline is not complete.
    left semi join baselines
        on
            landed.baseline_id = baselines.baseline_id
            and landed.schema_name = baselines.schema_name
            and landed.table_name = baselines.table_name

)

select * from final
