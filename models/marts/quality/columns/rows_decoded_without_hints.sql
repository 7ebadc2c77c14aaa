with

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

counted as (

    select /*+ broadcast(completed_segments) */
        row_event_counts.*,
        struct(
            row_event_counts.epoch,
            completed_segments.file_sequence,
            row_event_counts.first_pos,
            row_event_counts.binlog_file
        ) as first_position
    from row_event_counts
    inner join completed_segments
        on {{ same_segment('row_event_counts', 'completed_segments') }}

),

final as (

    select
        counted.source_id,
        counted.schema_name,
        counted.table_name,
        counted.table_map_id,
        any_value(table_maps.column_count) as column_count,
        any_value(table_maps.unknown_hints) as unknown_hints,
        sum(counted.row_events) as row_events,
        min(counted.first_position).binlog_file as first_binlog_file,
        min(counted.first_position).first_pos as first_pos,
        min(counted.first_event_at) as first_event_at,
        max(counted.last_event_at) as last_event_at
    from counted
    inner join table_maps
        on
            counted.source_id = table_maps.source_id
            and counted.table_map_id = table_maps.table_map_id
            and table_maps.unknown_hints is not null
    group by
        counted.source_id,
        counted.schema_name,
        counted.table_name,
        counted.table_map_id

)

select * from final
