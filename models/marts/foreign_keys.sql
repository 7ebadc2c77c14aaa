with

foreign_keys as (

    select * from {{ ref('stg_binlog__foreign_keys') }}

),

schema_snapshots as (

    select * from {{ ref('stg_binlog__schema_snapshots') }}
    -- Those of expired files are made of the log, which does not have all keys.
    where origin != 'binlog'

),

latest_snapshots as (

    select
        source_id,
        max_by(snapshot_id, struct(taken_at, snapshot_id)) as snapshot_id,
        max(taken_at) as taken_at
    from schema_snapshots
    group by source_id

),

final as (

    select
        latest_snapshots.source_id,
        latest_snapshots.snapshot_id,
        foreign_keys.constraint_name,
        foreign_keys.schema_name,
        foreign_keys.table_name,
        foreign_keys.column_name,
        foreign_keys.referenced_schema_name,
        foreign_keys.referenced_table_name,
        foreign_keys.referenced_column_name,
        foreign_keys.update_rule,
        foreign_keys.delete_rule,
        foreign_keys.ordinal_position,
        upper(foreign_keys.update_rule) not in ('NO ACTION', 'RESTRICT')
        or upper(foreign_keys.delete_rule) not in ('NO ACTION', 'RESTRICT') as is_cascading,
        latest_snapshots.taken_at
    from latest_snapshots
    inner join foreign_keys on latest_snapshots.snapshot_id = foreign_keys.snapshot_id

)

select * from final
