{{
    config(
        materialized='incremental',
        incremental_strategy='insert_overwrite',
        on_schema_change='fail',
        partition_by=['event_hour'],
        pre_hook="{{ drop_uncounted_hours() }}",
    )
}}

{%- set hours = uncounted_hours() | map(attribute='event_hour') | list if is_incremental() else none %}
{%- set built = built_event_hours() if execute else 'built_event_hours' %}
-- depends_on: {{ ref('int_event_hours') }}

with

row_changes as (

    select * from {{ ref('row_changes') }}
    where {{ in_hours(hours) }}

),

built_event_hours as (

    select * from {{ built }}
    where {{ in_hours(hours, event_timestamp=none) }}

),

-- The positions, not the identifier that is made of them: numbers are grouped at a fraction of the cost.
positions as (

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour,
        count(*) as occurrences
    from row_changes
    group by
        source_id,
        epoch,
        binlog_file,
        start_pos,
        payload_ordinal,
        row_ordinal,
        schema_name,
        table_name,
        event_type,
        event_hour

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
        sum(occurrences) as row_changes,
        sum(occurrences - 1) as duplicates
    from positions
    group by
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        event_type,
        event_hour

),

-- An hour whose rows are all in quarantine is in the table all the same: it has been counted.
final as (

    select
        counted.source_id,
        counted.epoch,
        counted.binlog_file,
        counted.schema_name,
        counted.table_name,
        counted.event_type,
        coalesce(counted.row_changes, 0) as row_changes,
        coalesce(counted.duplicates, 0) as duplicates,
        built_event_hours.fingerprint,
        coalesce(counted.event_hour, built_event_hours.event_hour) as event_hour
    from built_event_hours
    full outer join counted on built_event_hours.event_hour = counted.event_hour

)

select * from final
