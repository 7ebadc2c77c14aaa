with

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        event_hour,
        sum(row_events) as row_events,
        sum(inserts) as inserts,
        sum(updates) as updates,
        sum(deletes) as deletes,
        min(first_event_at) as first_event_at,
        max(last_event_at) as last_event_at
    from row_event_counts
    group by source_id, schema_name, table_name, event_hour

)

select * from final
