with

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

row_change_counts as (

    select * from {{ ref('int_row_change_counts') }}
    where row_changes > 0

),

quarantined_row_events as (

    select * from {{ ref('quarantined_row_events') }}

),

-- The counts per kind are columns there and rows here.
landed as (

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_hour,
        stack(3, 'INSERT', inserts, 'UPDATE', updates, 'DELETE', deletes) as (event_type, landed)
    from row_event_counts

),

counted as (

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour,
        landed,
        0 as in_row_changes,
        0 as in_quarantine
    from landed

    union all

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour,
        0 as landed,
        row_changes as in_row_changes,
        0 as in_quarantine
    from row_change_counts

    union all

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour,
        0 as landed,
        0 as in_row_changes,
        count(*) as in_quarantine
    from quarantined_row_events
    where reason != 'decode_error'
    group by
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour,
        sum(landed) as landed,
        sum(in_row_changes) as in_row_changes,
        sum(in_quarantine) as in_quarantine
    from counted
    group by
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour
    having sum(landed) != sum(in_row_changes) + sum(in_quarantine)

)

select * from final
