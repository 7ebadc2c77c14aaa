with

landed as (

    select * from {{ source('binlog', 'schema_snapshots') }}

),

ranked as (

    select
        *,
        -- The identifier is a hash of the content, so a snapshot that was landed twice is one snapshot.
        row_number() over (partition by source_id, snapshot_id order by taken_at desc) as recency
    from landed

),

final as (

    select
        snapshot_id,
        source_id,
        epoch,
        binlog_file,
        binlog_pos,
        gtid_executed,
        origin,
        logs_cascades,
        taken_at
    from ranked
    where recency = 1

)

select * from final
