{{
    config(
        materialized='parts',
        partition_by=['event_hour', 'source_id', 'epoch', 'binlog_file', 'file_part'],
        meta={'parts': {'built': 'row_changes'}},
    )
}}

{%- set parts = stale_parts() -%}

with

row_changes as (

    select * from {{ ref('row_changes') }}
    where {{ in_parts(parts) }}

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
        event_hour,
        source_id,
        epoch,
        binlog_file,
        file_part,
        schema_name,
        table_name,
        table_version_id,
        event_type,
        count(*) as occurrences,
        count_if(not fits_its_event_type) as misfits
    from judged
    group by
        event_hour,
        source_id,
        epoch,
        binlog_file,
        file_part,
        start_pos,
        payload_ordinal,
        row_ordinal,
        schema_name,
        table_name,
        table_version_id,
        event_type

),

final as (

    select
        schema_name,
        table_name,
        table_version_id,
        event_type,
        sum(occurrences) as row_changes,
        sum(occurrences - 1) as duplicates,
        sum(misfits) as misfits,
        event_hour,
        source_id,
        epoch,
        binlog_file,
        file_part
    from positions
    group by
        event_hour,
        source_id,
        epoch,
        binlog_file,
        file_part,
        schema_name,
        table_name,
        table_version_id,
        event_type

)

select * from final
