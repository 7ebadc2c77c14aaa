with

landed as (

    select * from {{ source('binlog', 'stream_gaps') }}

),

ranked as (

    select
        *,
        -- For two states with the same time, `found` is the older one, because every other state follows it.
        row_number() over (partition by gap_id order by recorded_at desc, status = 'found' asc) as recency,
        min(recorded_at) over (partition by gap_id) as found_at
    from landed

),

final as (

    select
        gap_id,
        source_id,
        from_epoch,
        from_file,
        from_pos,
        from_gtids,
        to_epoch,
        to_file,
        to_pos,
        to_gtids,
        missing_gtids,
        reason,
        status,
        detail,
        server_uuid,
        found_at,
        recorded_at
    from ranked
    where recency = 1

)

select * from final
