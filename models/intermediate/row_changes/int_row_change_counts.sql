{{
    config(
        materialized='incremental',
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

judged as (

    select
        *,
        -- The maps are not checked here, because reading them costs more than everything else. Unit tests check them.
        coalesce(
            case event_type
                when 'UPDATE' then changed_columns is not null
                when 'INSERT' then changed_columns is null and pk_values_after is null
                when 'DELETE' then changed_columns is null and pk_values_after is null
            end
            and (pk_values is null) = (pk_hash is null)
            and (pk_values_after is null or pk_values_after != pk_values),
            false
        ) as fits_its_event_type
    from row_changes

),

-- Group by the positions and not by change_id, which is made of them: grouping numbers costs a fraction.
positions as (

    select
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        table_version_id,
        event_type,
        event_hour,
        count(*) as occurrences,
        count_if(not fits_its_event_type) as misfits
    from judged
    group by
        source_id,
        epoch,
        binlog_file,
        start_pos,
        payload_ordinal,
        row_ordinal,
        schema_name,
        table_name,
        table_version_id,
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
        table_version_id,
        event_type,
        event_hour,
        sum(occurrences) as row_changes,
        sum(occurrences - 1) as duplicates,
        sum(misfits) as misfits
    from positions
    group by
        source_id,
        epoch,
        binlog_file,
        schema_name,
        table_name,
        table_version_id,
        event_type,
        event_hour

),

-- An hour whose rows are all in quarantine has a row too, as a record that it was counted.
final as (

    select
        counted.source_id,
        counted.epoch,
        counted.binlog_file,
        counted.schema_name,
        counted.table_name,
        counted.table_version_id,
        counted.event_type,
        coalesce(counted.row_changes, 0) as row_changes,
        coalesce(counted.duplicates, 0) as duplicates,
        coalesce(counted.misfits, 0) as misfits,
        built_event_hours.fingerprint,
        coalesce(counted.event_hour, built_event_hours.event_hour) as event_hour
    from built_event_hours
    full outer join counted on built_event_hours.event_hour = counted.event_hour

)

select * from final
