{{ config(materialized='view') }}

with

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

counted as (

    select
        *,
        explode(row_event_counts) as counts
    from completed_segments

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        counts.table_map_id,
        counts.schema_name,
        counts.table_name,
        counts.event_hour,
        counts.inserts + counts.updates + counts.deletes as row_events,
        counts.inserts,
        counts.updates,
        counts.deletes,
        counts.first_pos,
        counts.last_pos,
        counts.first_event_at,
        counts.last_event_at,
        landed_at
    from counted

)

select * from final
