with

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

bindings as (

    select * from {{ ref('int_table_map_bindings') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

table_versions as (

    select * from {{ ref('int_table_versions_unioned') }}

),

pairs as (

    select distinct
        bindings.source_id,
        bindings.table_map_id,
        bindings.table_version_id,
        table_maps.hint,
        table_maps.columns as map_columns,
        table_versions.columns as version_columns
    from bindings
    inner join table_maps
        on bindings.source_id = table_maps.source_id and bindings.table_map_id = table_maps.table_map_id
    inner join table_versions
        on bindings.table_version_id = table_versions.table_version_id and table_versions.evidence != 'table_map'
    where bindings.reason is null

),

paired_columns as (

    select
        source_id,
        table_map_id,
        table_version_id,
        hint,
        explode(arrays_zip(map_columns, version_columns)) as paired
    from pairs

),

differences as (

    select
        source_id,
        table_map_id,
        table_version_id,
        paired.version_columns.name as column_name,
        {{ hint_difference('hint', 'paired.map_columns', 'paired.version_columns') }} as difference
    from paired_columns

),

wrong_maps as (

    select
        source_id,
        table_map_id,
        table_version_id,
        array_sort(collect_list(concat(column_name, ': ', difference))) as differences
    from differences
    where difference is not null
    group by source_id, table_map_id, table_version_id

),

final as (

    select
        row_event_counts.source_id,
        row_event_counts.epoch,
        row_event_counts.binlog_file,
        row_event_counts.segment_start,
        row_event_counts.schema_name,
        row_event_counts.table_name,
        row_event_counts.table_map_id,
        any_value(wrong_maps.differences) as differences,
        sum(row_event_counts.row_events) as row_events
    from wrong_maps
    inner join row_event_counts
        on
            wrong_maps.source_id = row_event_counts.source_id
            and wrong_maps.table_map_id = row_event_counts.table_map_id
    inner join completed_segments
        on {{ same_segment('row_event_counts', 'completed_segments') }}
    inner join bindings
        on
            wrong_maps.source_id = bindings.source_id
            and wrong_maps.table_map_id = bindings.table_map_id
            and wrong_maps.table_version_id = bindings.table_version_id
            and {{ position_reached(
                'row_event_counts.epoch', 'completed_segments.file_sequence', 'row_event_counts.last_pos',
                'bindings.valid_from'
            ) }}
            and {{ position_before(
                'row_event_counts.epoch', 'completed_segments.file_sequence', 'row_event_counts.first_pos',
                'bindings.valid_to'
            ) }}
    group by
        row_event_counts.source_id,
        row_event_counts.epoch,
        row_event_counts.binlog_file,
        row_event_counts.segment_start,
        row_event_counts.schema_name,
        row_event_counts.table_name,
        row_event_counts.table_map_id

)

select * from final
