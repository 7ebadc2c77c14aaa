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

    select *
    from {{ ref('stg_binlog__table_versions') }}
    -- Others give no hints: later statements changed types of their columns.
    where not exists(columns, one -> one.data_type is null)

),

statement_format_changes as (

    select * from {{ ref('int_statement_format_changes') }}

),

described as (

    select
        bindings.source_id,
        bindings.table_map_id,
        bindings.valid_from_epoch,
        bindings.valid_from_file_sequence,
        bindings.valid_from_pos,
        bindings.valid_to_epoch,
        bindings.valid_to_file_sequence,
        bindings.valid_to_pos,
        bindings.table_version_id,
        table_versions.columns
    from bindings
    inner join table_versions
        on bindings.table_version_id = table_versions.table_version_id and table_versions.evidence != 'table_map'
    where bindings.reason is null

    union all

    -- Where the log itself has the names, but lacks some hints, a version with the same names may have the hints.
    select
        bindings.source_id,
        bindings.table_map_id,
        table_versions.valid_from_epoch,
        table_versions.valid_from_file_sequence,
        table_versions.valid_from_pos,
        table_versions.valid_to_epoch,
        table_versions.valid_to_file_sequence,
        table_versions.valid_to_pos,
        table_versions.table_version_id,
        table_versions.columns
    from bindings
    inner join table_versions
        on
            bindings.source_id = table_versions.source_id
            and bindings.schema_name = table_versions.schema_name
            and bindings.table_name = table_versions.table_name
            and bindings.column_names = table_versions.column_names
            and table_versions.evidence != 'table_map'
    where bindings.confidence = 'exact' and bindings.unknown_hints is not null

),

pairs as (

    select distinct
        described.source_id,
        described.table_map_id,
        described.table_version_id,
        table_maps.hint,
        table_maps.unknown_hints,
        table_maps.columns as map_columns,
        described.columns as version_columns
    from described
    inner join table_maps
        on described.source_id = table_maps.source_id and described.table_map_id = table_maps.table_map_id

),

paired_columns as (

    select
        source_id,
        table_map_id,
        table_version_id,
        hint,
        unknown_hints,
        posexplode(arrays_zip(map_columns, version_columns)) as (ordinal, paired)
    from pairs

),

differences as (

    select
        source_id,
        table_map_id,
        table_version_id,
        paired.version_columns.name as column_name,
        {{ hint_difference(
            'hint', 'map_from_entries(unknown_hints)[ordinal]', 'paired.map_columns', 'paired.version_columns'
        ) }} as difference
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

with_wrong_maps as (

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
    inner join described
        on
            wrong_maps.source_id = described.source_id
            and wrong_maps.table_map_id = described.table_map_id
            and wrong_maps.table_version_id = described.table_version_id
            and {{ holds_for_rows('described', 'row_event_counts', 'completed_segments') }}
    group by
        row_event_counts.source_id,
        row_event_counts.epoch,
        row_event_counts.binlog_file,
        row_event_counts.segment_start,
        row_event_counts.schema_name,
        row_event_counts.table_name,
        row_event_counts.table_map_id

),

-- An older binloom landed these statements without their targets, or without the rows that they took back.
without_targets as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        array('statements: an older binloom landed them, and did not record which rows they change') as differences
    from statement_format_changes
    where statements > 0 and verb is null

),

final as (

    select * from with_wrong_maps

    union all

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        cast(null as string) as schema_name,
        cast(null as string) as table_name,
        cast(null as string) as table_map_id,
        differences,
        0L as row_events
    from without_targets

)

select * from final
