with

sources as (

    select * from {{ ref('stg_binlog__sources') }}

),

final as (

    select
        source_id,
        epoch,
        change,
        server_uuid,
        server_id,
        host,
        port,
        flavor,
        server_version,
        observed_at,
        lead(observed_at) over (partition by source_id order by epoch, observed_at) as observed_until,
        start_file,
        start_pos,
        gtids_before
    from sources

)

select * from final
