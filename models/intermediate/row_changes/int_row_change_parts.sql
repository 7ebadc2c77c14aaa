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

xa_transactions as (

    select * from {{ ref('int_xa_transactions') }}

),

xa_outcomes_by_segment as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        md5(array_join(array_sort(collect_list(concat_ws(' ', start_pos, outcome, committed_at))), ',')) as xa_outcomes
    from xa_transactions
    group by source_id, epoch, binlog_file, segment_start

),

-- All inputs of the rows of a part: their landed segments, the later ends of prepared transactions, and the bindings
-- of their table maps over the positions that they span.
ingredients as (

    select
        row_event_counts.event_hour,
        row_event_counts.source_id,
        row_event_counts.epoch,
        row_event_counts.binlog_file,
        row_event_counts.segment_start,
        {{ file_part('row_event_counts.segment_start') }} as file_part,
        row_event_counts.landed_at,
        row_event_counts.row_events,
        row_event_counts.table_map_id,
        xa_outcomes_by_segment.xa_outcomes,
        bindings.table_version_id,
        bindings.reason,
        bindings.confidence,
        bindings.unknown_hints,
        completed_segments.file_sequence,
        {{ position_reached(
            'row_event_counts.epoch', 'completed_segments.file_sequence', 'row_event_counts.first_pos',
            'bindings.valid_from'
        ) }} as holds_first,
        {{ position_before(
            'row_event_counts.epoch', 'completed_segments.file_sequence', 'row_event_counts.last_pos',
            'bindings.valid_to'
        ) }} as holds_last,
        bindings.valid_from_epoch,
        bindings.valid_from_file_sequence,
        bindings.valid_from_pos
    from row_event_counts
    inner join completed_segments
        on {{ same_segment('row_event_counts', 'completed_segments') }}
    left join xa_outcomes_by_segment
        on {{ same_segment('row_event_counts', 'xa_outcomes_by_segment') }}
    left join bindings
        on
            row_event_counts.source_id = bindings.source_id
            and row_event_counts.table_map_id = bindings.table_map_id
            and {{ holds_for_rows('bindings', 'row_event_counts', 'completed_segments') }}

),

final as (

    select
        event_hour,
        source_id,
        epoch,
        binlog_file,
        file_part,
        md5(
            array_join(
                array_sort(
                    collect_list(
                        to_json(
                            struct(
                                -- Another number when the same inputs give other values, for example a new column.
                                1 as layout,
                                segment_start,
                                landed_at,
                                row_events,
                                xa_outcomes,
                                table_map_id,
                                table_version_id,
                                reason,
                                confidence,
                                -- Where a binding begins before the rows does not matter.
                                if(holds_first, null, valid_from_epoch) as valid_from_epoch,
                                if(holds_first, null, valid_from_file_sequence) as valid_from_file_sequence,
                                if(holds_first, null, valid_from_pos) as valid_from_pos
                            )
                        )
                    )
                ),
                ','
            )
        ) as fingerprint,
        -- Only the first and the last row of a range are known to exist here. It is also unknown here which rows have a
        -- value that depends on an unknown hint.
        coalesce(
            bool_or(
                table_version_id is not null
                and reason is null
                and unknown_hints is null
                and (holds_first or holds_last)
            ),
            false
        ) as has_bound_rows
    from ingredients
    group by event_hour, source_id, epoch, binlog_file, file_part

)

select * from final
