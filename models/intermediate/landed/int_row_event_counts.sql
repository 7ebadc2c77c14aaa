{{
    config(
        materialized='incremental',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_landed_files', 'fingerprint': 'segments', 'has_rows': 'row_events > 0'}},
    )
}}

-- depends_on: {{ ref('int_landed_files') }}

with

row_events as (

    select * from {{ ref('stg_binlog__row_events') }}
    where {{ in_stale_files() }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

counted as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        table_map_id,
        schema_name,
        table_name,
        {{ event_hour('event_timestamp') }} as event_hour,
        count(*) as row_events,
        count_if(event_type = 'INSERT') as inserts,
        count_if(event_type = 'UPDATE') as updates,
        count_if(event_type = 'DELETE') as deletes,
        min(start_pos) as first_pos,
        max(start_pos) as last_pos,
        min(event_timestamp) as first_event_at,
        max(event_timestamp) as last_event_at
    from row_events
    group by
        source_id,
        epoch,
        binlog_file,
        segment_start,
        table_map_id,
        schema_name,
        table_name,
        {{ event_hour('event_timestamp') }}

),

final as (

    select
        counted.segment_start,
        counted.table_map_id,
        counted.schema_name,
        counted.table_name,
        counted.event_hour,
        counted.row_events,
        counted.inserts,
        counted.updates,
        counted.deletes,
        counted.first_pos,
        counted.last_pos,
        counted.first_event_at,
        counted.last_event_at,
        completed_segments.landed_at,
        counted.source_id,
        counted.epoch,
        counted.binlog_file
    from counted
    inner join completed_segments
        on {{ same_segment('counted', 'completed_segments') }}

)

select * from final
