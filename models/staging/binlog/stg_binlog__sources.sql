with

landed as (

    select * from {{ source('binlog', 'sources') }}

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
        -- An opening may be given up before anything of the epoch is received: the latest one counts.
        coalesce(
            max(case when change = 'epoch_opened' then observed_at end) over (partition by source_id, epoch),
            min(observed_at) over (partition by source_id, epoch)
        ) as opened_at,
        observed_at,
        change,
        start_file,
        start_pos,
        gtids_before
    from landed

)

select * from final
