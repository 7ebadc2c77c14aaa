with

stream_gaps as (

    select * from {{ ref('stg_binlog__stream_gaps') }}

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
        case
            when status = 'found' then 'following has stopped; what lies between has not been read'
            when status = 'accepted' then 'what lies between is missing, and was given up with --accept-gap'
            when status = 'unproven' then 'nothing is known to be missing, but the log does not show that nothing is'
        end as meaning,
        detail,
        server_uuid,
        found_at,
        recorded_at
    from stream_gaps
    where status != 'filled'

)

select * from final
