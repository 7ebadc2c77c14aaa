with

landed as (

    select * from {{ source('binlog', 'sources') }}

),

ranked as (

    select
        *,
        row_number() over (partition by source_id, epoch order by observed_at desc) as recency,
        min(observed_at) over (partition by source_id, epoch) as opened_at
    from landed

),

final as (

    select
        source_id,
        epoch,
        server_uuid,
        server_id,
        host,
        port,
        flavor,
        server_version,
        opened_at,
        observed_at,
        change
    from ranked
    where recency = 1

)

select * from final
