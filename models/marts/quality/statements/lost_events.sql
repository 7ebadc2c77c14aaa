with

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        start_pos,
        end_pos,
        detail
    from unsupported_events
    where reason = 'incident'

)

select * from final
