{% if is_building() and has_no_rows(ref('int_chain_breaks')) -%}
{{ without_rows() }}
{% else %}
with

breaks as (

    select
        *,
        -- An UPDATE that changes the key may break the chain of both keys.
        concat_ws('/', change_id, pk_values) as break_id,
        struct(epoch, file_sequence, start_pos) as position,
        struct(previous_epoch as epoch, previous_file_sequence as file_sequence, previous_start_pos as start_pos)
            as previous_position
    from {{ ref('int_chain_breaks') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

unlanded_positions as (

    select * from {{ ref('int_unlanded_positions') }}

),

statement_format_changes as (

    select
        source_id,
        schema_name,
        table_name,
        struct(epoch, {{ file_sequence('binlog_file') }} as file_sequence, first_pos as start_pos) as first_position,
        struct(epoch, {{ file_sequence('binlog_file') }} as file_sequence, last_pos as start_pos) as last_position
    from {{ ref('int_statement_format_changes') }}
    where statements > 0

),

schema_changes as (

    select * from {{ ref('schema_changes') }}

),

cascading_ancestors as (

    select * from {{ ref('int_cascading_ancestors') }}

),

without_events as (

    select distinct breaks.break_id
    from breaks
    inner join unlanded_positions
        on
            breaks.source_id = unlanded_positions.source_id
            and unlanded_positions.position between breaks.previous_position and breaks.position
            and coalesce(breaks.schema_name = unlanded_positions.schema_name, true)
            and coalesce(breaks.table_name = unlanded_positions.table_name, true)

),

filtered as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        segment_end,
        table_filter,
        struct(epoch, file_sequence, segment_start as start_pos) as position
    from completed_segments

),

-- A filter that let both changes pass includes the table.
left_out_between as (

    select distinct breaks.break_id
    from breaks
    inner join filtered as own
        on
            breaks.source_id = own.source_id
            and breaks.epoch = own.epoch
            and breaks.binlog_file = own.binlog_file
            and breaks.start_pos >= own.segment_start
            and breaks.start_pos < own.segment_end
    inner join filtered as previous
        on
            breaks.source_id = previous.source_id
            and breaks.previous_epoch = previous.epoch
            and breaks.previous_binlog_file = previous.binlog_file
            and breaks.previous_start_pos >= previous.segment_start
            and breaks.previous_start_pos < previous.segment_end
    inner join filtered as between_them
        on
            breaks.source_id = between_them.source_id
            and breaks.previous_position < between_them.position
            and breaks.position > between_them.position
    where
        between_them.table_filter is not null
        and not between_them.table_filter <=> own.table_filter
        and not between_them.table_filter <=> previous.table_filter

),

-- Only the first and the last statement of a segment are known. A statement without a table may have changed any table.
logged_as_text as (

    select distinct breaks.break_id
    from breaks
    inner join statement_format_changes
        on
            breaks.source_id = statement_format_changes.source_id
            and coalesce(lower(breaks.schema_name) = lower(statement_format_changes.schema_name), true)
            and coalesce(lower(breaks.table_name) = lower(statement_format_changes.table_name), true)
            and breaks.position > statement_format_changes.first_position
            and breaks.previous_position < statement_format_changes.last_position

),

altered as (

    select distinct breaks.break_id
    from breaks
    inner join schema_changes
        on
            breaks.source_id = schema_changes.source_id
            and schema_changes.statement_type = 'ALTER TABLE'
            and lower(breaks.schema_name) = lower(schema_changes.schema_name)
            and lower(breaks.table_name) = lower(schema_changes.table_name)
            and struct(schema_changes.epoch, schema_changes.file_sequence, schema_changes.start_pos)
            between breaks.previous_position and breaks.position

),

-- Includes the files between the two changes, so that no other files are read.
suspects as (

    select distinct
        breaks.break_id,
        breaks.position,
        breaks.previous_position,
        cascading_ancestors.referenced_schema_name,
        cascading_ancestors.referenced_table_name,
        cascading_ancestors.referenced_column_names,
        cascading_ancestors.follows_deletes,
        cascading_ancestors.follows_updates,
        completed_segments.source_id,
        completed_segments.epoch,
        completed_segments.binlog_file
    from breaks
    inner join cascading_ancestors
        on
            breaks.source_id = cascading_ancestors.source_id
            and breaks.schema_name = cascading_ancestors.schema_name
            and breaks.table_name = cascading_ancestors.table_name
            and (
                breaks.defect != 'values_differ'
                or arrays_overlap(breaks.differing_columns, cascading_ancestors.column_names)
            )
    inner join completed_segments
        on
            breaks.source_id = completed_segments.source_id
            and struct(completed_segments.epoch, completed_segments.file_sequence)
            between struct(breaks.previous_epoch as epoch, breaks.previous_file_sequence as file_sequence)
            and struct(breaks.epoch, breaks.file_sequence)

),

cascaded as (

    select /*+ broadcast(suspects) */ distinct suspects.break_id
    from {{ ref('int_row_events_bound') }} as row_events
    inner join suspects
        on
            row_events.source_id = suspects.source_id
            and row_events.epoch = suspects.epoch
            and row_events.binlog_file = suspects.binlog_file
            and row_events.schema_name = suspects.referenced_schema_name
            and row_events.table_name = suspects.referenced_table_name
    where
        struct(row_events.epoch, row_events.file_sequence, row_events.start_pos)
        between suspects.previous_position and suspects.position
        and (
            (row_events.event_type = 'DELETE' and suspects.follows_deletes)
            or (
                row_events.event_type = 'UPDATE'
                and suspects.follows_updates
                and exists(
                    suspects.referenced_column_names,
                    name -> not get(
                        row_events.before_values, cast(array_position(row_events.column_names, name) as int) - 1
                    ) <=> get(row_events.after_values, cast(array_position(row_events.column_names, name) as int) - 1)
                )
            )
        )

),

final as (

    select
        breaks.source_id,
        breaks.schema_name,
        breaks.table_name,
        breaks.pk_values,
        breaks.defect,
        breaks.differing_columns,
        case
            when without_events.break_id is not null or left_out_between.break_id is not null then 'not_landed'
            when breaks.epoch != breaks.previous_epoch then 'not_landed'
            when cascaded.break_id is not null then 'unlogged_cascade'
            when logged_as_text.break_id is not null then 'statement_format'
            when breaks.table_version_id != breaks.previous_table_version_id or altered.break_id is not null
                then 'version_change'
            else 'unlogged_write'
        end as cause,
        breaks.change_id,
        breaks.epoch,
        breaks.binlog_file,
        breaks.start_pos,
        breaks.previous_change_id,
        breaks.previous_epoch,
        breaks.previous_binlog_file,
        breaks.previous_start_pos,
        breaks.table_version_id,
        breaks.previous_table_version_id
    from breaks
    left join without_events on breaks.break_id = without_events.break_id
    left join left_out_between on breaks.break_id = left_out_between.break_id
    left join cascaded on breaks.break_id = cascaded.break_id
    left join logged_as_text on breaks.break_id = logged_as_text.break_id
    left join altered on breaks.break_id = altered.break_id

)

select * from final
{%- endif %}
