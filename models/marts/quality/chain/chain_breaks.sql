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

segments as (

    select * from {{ ref('stg_binlog__segments') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

quarantined_row_events as (

    select * from {{ ref('quarantined_row_events') }}

),

stream_gaps as (

    select * from {{ ref('stg_binlog__stream_gaps') }}

),

uncovered_bytes as (

    select * from {{ ref('uncovered_bytes') }}
    where defect != 'overlap'

),

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}

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

unlogged_cascades as (

    select * from {{ ref('unlogged_cascades') }}

),

row_events as (

    select * from {{ ref('int_row_events_bound') }}

),

landed_files as (

    select distinct
        source_id,
        epoch,
        binlog_file,
        file_sequence
    from completed_segments

),

following_files as (

    select
        source_id,
        epoch,
        file_sequence,
        lead(file_sequence) over (partition by source_id, epoch order by file_sequence) as next_file_sequence
    from landed_files

),

-- Places that may have changes that row_changes lacks, with their table where it is known.
not_landed as (

    select
        source_id,
        struct(epoch, file_sequence + 1 as file_sequence, 0L as start_pos) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from following_files
    where next_file_sequence > file_sequence + 1

    union all

    select
        segments.source_id,
        struct(
            segments.epoch,
            coalesce(binlog_files.file_sequence, {{ file_sequence('segments.binlog_file') }}) as file_sequence,
            segments.segment_start as start_pos
        ) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from segments
    left join binlog_files
        on
            segments.source_id = binlog_files.source_id
            and segments.epoch = binlog_files.epoch
            and segments.binlog_file = binlog_files.binlog_file
    where segments.is_current and segments.status in ('failed', 'in_progress', 'skipped')

    union all

    select
        source_id,
        struct(epoch, file_sequence, start_pos) as position,
        schema_name,
        table_name
    from quarantined_row_events

    union all

    select
        unsupported_events.source_id,
        struct(
            unsupported_events.epoch,
            {{ file_sequence('unsupported_events.binlog_file') }} as file_sequence,
            unsupported_events.start_pos
        ) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from unsupported_events
    where event_type = 'INCIDENT'

    union all

    select
        source_id,
        struct(
            from_epoch as epoch, {{ file_sequence('from_file') }} as file_sequence, from_pos as start_pos
        ) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from stream_gaps
    where status != 'filled'

    union all

    select
        source_id,
        struct(epoch, {{ file_sequence('binlog_file') }} as file_sequence, range_start as start_pos) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from uncovered_bytes

),

without_events as (

    select distinct breaks.break_id
    from breaks
    inner join not_landed
        on
            breaks.source_id = not_landed.source_id
            and not_landed.position between breaks.previous_position and breaks.position
            and coalesce(breaks.schema_name = not_landed.schema_name, true)
            and coalesce(breaks.table_name = not_landed.table_name, true)

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

-- When the parent itself is changed by a cascade, without a row event, the parent's parent has the row event.
grandparents as (

    select
        children.source_id,
        children.schema_name,
        children.table_name,
        children.column_names,
        parents.referenced_schema_name,
        parents.referenced_table_name,
        parents.referenced_column_names,
        parents.delete_rule,
        parents.update_rule
    from unlogged_cascades as children
    inner join unlogged_cascades as parents
        on
            children.source_id = parents.source_id
            and children.referenced_schema_name = parents.schema_name
            and children.referenced_table_name = parents.table_name

),

ancestors as (

    select
        source_id,
        schema_name,
        table_name,
        column_names,
        referenced_schema_name,
        referenced_table_name,
        referenced_column_names,
        delete_rule,
        update_rule
    from unlogged_cascades

    union all

    select * from grandparents

    union all

    select
        grandparents.source_id,
        grandparents.schema_name,
        grandparents.table_name,
        grandparents.column_names,
        parents.referenced_schema_name,
        parents.referenced_table_name,
        parents.referenced_column_names,
        parents.delete_rule,
        parents.update_rule
    from grandparents
    inner join unlogged_cascades as parents
        on
            grandparents.source_id = parents.source_id
            and grandparents.referenced_schema_name = parents.schema_name
            and grandparents.referenced_table_name = parents.table_name

),

-- Includes the files between the two changes, so that no other files are read.
suspects as (

    select distinct
        breaks.break_id,
        breaks.position,
        breaks.previous_position,
        ancestors.referenced_schema_name,
        ancestors.referenced_table_name,
        ancestors.referenced_column_names,
        ancestors.delete_rule not in ('NO ACTION', 'RESTRICT') as follows_deletes,
        ancestors.update_rule not in ('NO ACTION', 'RESTRICT') as follows_updates,
        landed_files.source_id,
        landed_files.epoch,
        landed_files.binlog_file
    from breaks
    inner join ancestors
        on
            breaks.source_id = ancestors.source_id
            and breaks.schema_name = ancestors.schema_name
            and breaks.table_name = ancestors.table_name
            and (
                breaks.defect != 'values_differ'
                or arrays_overlap(breaks.differing_columns, ancestors.column_names)
            )
    inner join landed_files
        on
            breaks.source_id = landed_files.source_id
            and struct(landed_files.epoch, landed_files.file_sequence)
            between struct(breaks.previous_epoch as epoch, breaks.previous_file_sequence as file_sequence)
            and struct(breaks.epoch, breaks.file_sequence)

),

cascaded as (

    select /*+ broadcast(suspects) */ distinct suspects.break_id
    from row_events
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
