-- table_activity_hourly is summed up from counts of files; these must be what is in the marts.
with

activity as (

    select
        source_id,
        schema_name,
        table_name,
        event_hour,
        row_events
    from {{ ref('table_activity_hourly') }}

),

row_events as (

    select
        source_id,
        schema_name,
        table_name,
        event_hour
    from {{ ref('row_changes') }}
    union all
    select
        source_id,
        schema_name,
        table_name,
        event_hour
    from {{ ref('quarantined_row_events') }}
    where reason != 'decode_error'

),

counted as (

    select
        source_id,
        schema_name,
        table_name,
        event_hour,
        count(*) as row_events
    from row_events
    group by
        source_id,
        schema_name,
        table_name,
        event_hour

)

select
    coalesce(activity.source_id, counted.source_id) as source_id,
    coalesce(activity.schema_name, counted.schema_name) as schema_name,
    coalesce(activity.table_name, counted.table_name) as table_name,
    coalesce(activity.event_hour, counted.event_hour) as event_hour,
    activity.row_events as in_activity,
    counted.row_events as in_marts
from activity
full outer join counted
    on
        activity.source_id = counted.source_id
        and activity.schema_name = counted.schema_name
        and activity.table_name = counted.table_name
        and activity.event_hour = counted.event_hour
where not activity.row_events <=> counted.row_events
