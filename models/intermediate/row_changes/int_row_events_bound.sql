{{ config(materialized='view') }}

{%- set is_uncertain -%}
(
    {{ depends_on_a_hint('row_events.before_values', 'bindings.unknown_hints') }}
    or {{ depends_on_a_hint('row_events.after_values', 'bindings.unknown_hints') }}
)
{%- endset %}

with

row_events as (

    select * from {{ ref('stg_binlog__row_events') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

bindings as (

    select * from {{ ref('int_table_map_bindings') }}

),

final as (

    select /*+ broadcast(completed_segments), broadcast(bindings) */
        row_events.*,
        {{ event_hour('row_events.event_timestamp') }} as event_hour,
        {{ file_part('row_events.segment_start') }} as file_part,
        completed_segments.file_sequence,
        {{ transaction_key('completed_segments.file_number', 'row_events.transaction_pos') }} as transaction_key,
        bindings.table_version_id,
        bindings.column_names,
        bindings.primary_key_ordinals,
        bindings.confidence as binding_confidence,
        bindings.masked_columns,
        case
            when bindings.table_map_id is null then 'unknown_table'
            when bindings.reason is not null then bindings.reason
            when
                size(bindings.column_names) != size(row_events.before_values)
                or size(bindings.column_names) != size(row_events.after_values)
                then 'column_count_mismatch'
            when bindings.unknown_hints is not null and {{ is_uncertain }} then 'value_uncertain'
        end as reason,
        case
            when bindings.table_map_id is null then 'the table map of the row event was not landed'
            when bindings.reason is not null then bindings.detail
            when
                size(bindings.column_names) != size(row_events.before_values)
                or size(bindings.column_names) != size(row_events.after_values)
                then 'the row does not have as many values as its table map has columns'
            when bindings.unknown_hints is not null and {{ is_uncertain }}
                then {{ unknown_hints_in_words('bindings.unknown_hints', 'bindings.column_names') }}
        end as detail
    from row_events
    inner join completed_segments
        on {{ same_segment('row_events', 'completed_segments') }}
    left join bindings
        on
            row_events.source_id = bindings.source_id
            and row_events.table_map_id = bindings.table_map_id
            and {{ position_reached(
                'row_events.epoch', 'completed_segments.file_sequence', 'row_events.start_pos', 'bindings.valid_from'
            ) }}
            and {{ position_before(
                'row_events.epoch', 'completed_segments.file_sequence', 'row_events.start_pos', 'bindings.valid_to'
            ) }}

)

select * from final
