with

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}

),

event_types as (

    select * from {{ ref('event_types') }}

),

final as (

    select
        unsupported_events.source_id,
        unsupported_events.epoch,
        unsupported_events.binlog_file,
        unsupported_events.start_pos,
        unsupported_events.end_pos,
        unsupported_events.event_type,
        event_types.meaning as event_meaning,
        unsupported_events.schema_name,
        unsupported_events.table_name,
        unsupported_events.reason,
        unsupported_events.detail
    from unsupported_events
    left join event_types on unsupported_events.event_type = event_types.event_type
    -- These are in lost_events and in uncovered_bytes.
    where unsupported_events.reason not in ('incident', 'bad_checksum')

)

select * from final
