-- table_activity_hourly sums counts that are taken when a file is new; the decoder counts independently. A command that
-- selects a model selects the tests that refer to it. This test needs table_activity_hourly, which is built from
-- int_completed_segments. The latter is named without a ref, so that it can be built alone.
{% set segments = graph.nodes['model.binloom.int_completed_segments'].relation_name if execute else 'segments' -%}

with

table_activity_hourly as (

    select * from {{ ref('table_activity_hourly') }}

),

completed_segments as (

    select * from {{ segments }}

),

activity as (

    select
        source_id,
        sum(row_events) as row_events
    from table_activity_hourly
    group by source_id

),

decoded as (

    select
        source_id,
        sum(row_events) as row_events
    from completed_segments
    group by source_id

)

select
    decoded.source_id,
    decoded.row_events as decoded,
    coalesce(activity.row_events, 0) as in_activity
from decoded
left join activity on decoded.source_id = activity.source_id
where decoded.row_events != coalesce(activity.row_events, 0)
