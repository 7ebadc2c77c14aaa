with

row_events as (

    select * from {{ ref('int_row_events_bound') }}

),

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

bindings as (

    select * from {{ ref('int_table_map_bindings') }}

),

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

event_types as (

    select * from {{ ref('event_types') }}

),

-- Only these segments are read; without problems there are none. A table map may have no names before its CREATE TABLE:
-- that matters only to segments with rows there.
suspect_segments as (

    select distinct
        row_event_counts.source_id,
        row_event_counts.epoch,
        row_event_counts.binlog_file,
        row_event_counts.segment_start
    from row_event_counts
    inner join completed_segments
        on {{ same_segment('row_event_counts', 'completed_segments') }}
    left join bindings
        on
            row_event_counts.source_id = bindings.source_id
            and row_event_counts.table_map_id = bindings.table_map_id
            and {{ holds_for_rows('bindings', 'row_event_counts', 'completed_segments') }}
    where
        bindings.table_map_id is null
        or bindings.reason is not null
        or bindings.unknown_hints is not null

),

unbound as (

    select /*+ broadcast(suspect_segments) */
        row_events.source_id,
        row_events.epoch,
        row_events.binlog_file,
        row_events.segment_start,
        row_events.file_sequence,
        row_events.start_pos,
        row_events.end_pos,
        row_events.payload_ordinal,
        row_events.row_ordinal,
        row_events.transaction_pos,
        row_events.gtid,
        row_events.event_type,
        row_events.event_timestamp,
        row_events.event_hour,
        row_events.schema_name,
        row_events.table_name,
        row_events.table_map_id,
        row_events.column_count,
        row_events.table_version_id,
        row_events.reason,
        row_events.detail,
        row_events.before_values,
        row_events.after_values,
        row_events.before_columns,
        row_events.after_columns,
        row_events.undecoded_columns,
        row_events.json_changes
    from row_events
    inner join suspect_segments
        on {{ same_segment('row_events', 'suspect_segments') }}
    where row_events.reason is not null

),

undecoded as (

    select
        unsupported_events.source_id,
        unsupported_events.epoch,
        unsupported_events.binlog_file,
        unsupported_events.segment_start,
        completed_segments.file_sequence,
        unsupported_events.start_pos,
        unsupported_events.end_pos,
        cast(null as int) as payload_ordinal,
        cast(null as int) as row_ordinal,
        cast(null as bigint) as transaction_pos,
        cast(null as string) as gtid,
        unsupported_events.event_type,
        cast(null as timestamp) as event_timestamp,
        cast(null as string) as event_hour,
        unsupported_events.schema_name,
        unsupported_events.table_name,
        cast(null as string) as table_map_id,
        cast(null as int) as column_count,
        cast(null as string) as table_version_id,
        'decode_error' as reason,
        concat_ws(': ', unsupported_events.reason, unsupported_events.detail) as detail,
        cast(null as array<string>) as before_values,
        cast(null as array<string>) as after_values,
        cast(null as array<int>) as before_columns,
        cast(null as array<int>) as after_columns,
        cast(null as array<int>) as undecoded_columns,
        cast(
            null as array<struct<column_ordinal: int, operation: string, path: string, value: string>>
        ) as json_changes
    from unsupported_events
    inner join completed_segments
        on {{ same_segment('unsupported_events', 'completed_segments') }}
    left join event_types on unsupported_events.event_type = event_types.event_type
    -- An event of an unknown type may have contained rows.
    where coalesce(event_types.changes_rows, 'yes') = 'yes' or unsupported_events.table_name is not null

),

unioned as (

    select * from unbound
    union all
    select * from undecoded

),

final as (

    select
        concat_ws(
            '/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal
        ) as row_event_id,
        *
    from unioned

)

select * from final
