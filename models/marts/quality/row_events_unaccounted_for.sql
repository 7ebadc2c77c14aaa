with

row_events as (

    select * from {{ ref('stg_binlog__row_events') }}

),

row_changes as (

    select * from {{ ref('row_changes') }}

),

quarantined_row_events as (

    select * from {{ ref('quarantined_row_events') }}

),

counted as (

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        {{ event_hour('event_timestamp') }} as event_hour,
        count(*) as landed,
        0 as in_row_changes,
        0 as in_quarantine
    from row_events
    group by
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        {{ event_hour('event_timestamp') }}

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
        count(*) as in_row_changes,
        0 as in_quarantine
    from row_changes
    group by
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour

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
