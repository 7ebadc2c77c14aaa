with

snapshot_positions as (

    select * from {{ ref('int_snapshot_positions') }}

),

schema_columns as (

    select * from {{ ref('stg_binlog__schema_columns') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

ddl_actions as (

    select * from {{ ref('stg_binlog__ddl_actions') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

-- Row images contain every column of a snapshot, including generated columns (stored, virtual, and those that a MariaDB
-- table has without listing them). Neither contains the hidden columns of functional indexes.
snapshot_tables as (

    select
        snapshot_id,
        schema_name,
        table_name,
        array_sort(
            collect_list(
                struct(
                    ordinal_position,
                    column_name,
                    lower(data_type) as data_type,
                    column_type,
                    character_set,
                    is_nullable,
                    primary_key_ordinal is not null as is_primary_key
                )
            )
        ) as ordered_columns
    from schema_columns
    group by snapshot_id, schema_name, table_name

),

from_snapshots as (

    select
        snapshot_positions.source_id,
        snapshot_tables.schema_name,
        snapshot_tables.table_name,
        -- The time of such a snapshot is unknown, so its range is an assumption; the first assumption is the beginning.
        if(snapshot_positions.pos is null, 'assume', 'observe') as action,
        'snapshot' as evidence,
        snapshot_positions.snapshot_id as evidence_id,
        transform(
            snapshot_tables.ordered_columns,
            col -> struct(
                col.column_name as name,
                col.data_type as data_type,
                col.column_type as column_type,
                col.character_set as character_set,
                col.is_nullable as is_nullable,
                col.is_primary_key as is_primary_key
            )
        ) as columns,
        coalesce(snapshot_positions.epoch, -1) as epoch,
        coalesce(snapshot_positions.file_sequence, -1) as file_sequence,
        coalesce(snapshot_positions.pos, -1) as pos,
        snapshot_positions.binlog_file,
        snapshot_positions.taken_at
    from snapshot_positions
    inner join snapshot_tables on snapshot_positions.snapshot_id = snapshot_tables.snapshot_id

),

ranked_snapshots as (

    select
        *,
        row_number() over (
            partition by source_id, schema_name, table_name, action order by taken_at desc, evidence_id desc
        ) as newest_first
    from from_snapshots

),

-- Only the latest snapshot without a position counts.
counting_snapshots as (

    select * except (newest_first)
    from ranked_snapshots
    where action = 'observe' or newest_first = 1

),

-- Tables with the server's names, whatever names the statements use.
named_tables as (

    select
        source_id,
        schema_name,
        table_name
    from from_snapshots
    union
    select
        source_id,
        schema_name,
        table_name
    from table_maps

),

-- A server with lower_case_table_names=1 keeps all names in lower case. The log does not record this setting. But when
-- no name has a capital, a statement that writes a capital can only mean the lower-case name.
lower_case_sources as (

    select source_id
    from named_tables
    group by source_id
    having not bool_or(schema_name != lower(schema_name) or table_name != lower(table_name))

),

-- A statement is in force from its end on. A statement inside a compressed payload has the payload's end, and so do the
-- rows after it in the payload.
placed_actions as (

    select /*+ broadcast(completed_segments), broadcast(lower_case_sources) */
        ddl_actions.* except (schema_name, table_name, other_schema_name, other_table_name),
        {% for name in ['schema_name', 'table_name', 'other_schema_name', 'other_table_name'] -%}
            if(
                lower_case_sources.source_id is null, ddl_actions.{{ name }}, lower(ddl_actions.{{ name }})
            ) as {{ name }},
        {% endfor -%}
        completed_segments.file_sequence,
        if(ddl_actions.payload_ordinal > 0, ddl_actions.start_pos, ddl_actions.end_pos) as pos
    from ddl_actions
    inner join completed_segments
        on {{ same_segment('ddl_actions', 'completed_segments') }}
    left join lower_case_sources on ddl_actions.source_id = lower_case_sources.source_id
    where
        ddl_actions.action not in (
            'truncate_table', 'drop_partition', 'truncate_partition', 'exchange_partition', 'create_database', 'other'
        )

),

known_tables as (

    select * from named_tables
    union
    select
        source_id,
        schema_name,
        table_name
    from placed_actions
    where table_name is not null
    union
    select
        source_id,
        other_schema_name as schema_name,
        other_table_name as table_name
    from placed_actions
    where other_table_name is not null

),

-- A statement on a database, or on an unknown table, concerns every known table.
from_statements as (

    select
        placed_actions.* except (schema_name, table_name, action),
        coalesce(placed_actions.schema_name, known_tables.schema_name) as schema_name,
        coalesce(placed_actions.table_name, known_tables.table_name) as table_name,
        if(placed_actions.action = 'drop_database', 'drop_table', placed_actions.action) as action
    from placed_actions
    left join known_tables
        on
            placed_actions.table_name is null
            and placed_actions.source_id = known_tables.source_id
            and coalesce(placed_actions.schema_name, known_tables.schema_name) = known_tables.schema_name
    where coalesce(placed_actions.table_name, known_tables.table_name) is not null

),

landed_stretches as (

    select
        completed_segments.source_id,
        completed_segments.epoch,
        completed_segments.file_sequence,
        completed_segments.binlog_file,
        completed_segments.segment_start,
        completed_segments.segment_end,
        binlog_files.file_size
    from completed_segments
    left join binlog_files
        on
            completed_segments.source_id = binlog_files.source_id
            and completed_segments.epoch = binlog_files.epoch
            and completed_segments.binlog_file = binlog_files.binlog_file

),

-- Snapshots that were taken in a file without landed segments.
unlanded_places as (

    select distinct
        snapshot_positions.source_id,
        snapshot_positions.epoch,
        snapshot_positions.file_sequence
    from snapshot_positions
    left anti join landed_stretches
        on
            snapshot_positions.source_id = landed_stretches.source_id
            and snapshot_positions.epoch = landed_stretches.epoch
            and snapshot_positions.file_sequence = landed_stretches.file_sequence
    where snapshot_positions.pos is not null

),

stretches as (

    select
        *,
        true as is_landed
    from landed_stretches
    union all
    select
        source_id,
        epoch,
        file_sequence,
        cast(null as string) as binlog_file,
        cast(null as bigint) as segment_start,
        cast(null as bigint) as segment_end,
        cast(null as bigint) as file_size,
        false as is_landed
    from unlanded_places

),

neighbours as (

    select
        *,
        lag(struct(epoch, file_sequence, segment_end, file_size)) over (
            partition by source_id order by epoch, file_sequence, segment_start
        ) as before
    from stretches

),

-- A table's columns are uncertain after a part of the log that is not landed, and after a change of epoch.
holes as (

    select
        source_id,
        epoch,
        file_sequence,
        binlog_file,
        segment_start
    from neighbours
    where
        is_landed
        and before is not null
        and not coalesce(
            before.epoch = epoch
            and (
                (before.file_sequence = file_sequence and before.segment_end >= segment_start)
                or (
                    before.file_sequence = file_sequence - 1
                    and before.segment_end >= before.file_size
                    and segment_start <= 4
                )
            ),
            false
        )

),

unnamed_tables as (

    select distinct
        source_id,
        schema_name,
        table_name
    from table_maps
    where exists(columns, col -> col.name is null)

),

doubts as (

    select
        holes.source_id,
        unnamed_tables.schema_name,
        unnamed_tables.table_name,
        holes.epoch,
        holes.file_sequence,
        holes.binlog_file,
        holes.segment_start
    from holes
    inner join unnamed_tables on holes.source_id = unnamed_tables.source_id

),

unioned as (

    select
        source_id,
        schema_name,
        table_name,
        cast(null as string) as other_schema_name,
        cast(null as string) as other_table_name,
        action,
        evidence,
        evidence_id,
        columns,
        cast(null as string) as column_name,
        cast(null as string) as place,
        cast(null as string) as after_column,
        cast(null as array<string>) as key_columns,
        cast(null as string) as character_set,
        false as is_conditional,
        epoch,
        file_sequence,
        pos,
        binlog_file,
        taken_at,
        -1 as payload_ordinal,
        -1 as action_ordinal
    from counting_snapshots
    union all
    select
        source_id,
        schema_name,
        table_name,
        other_schema_name,
        other_table_name,
        action,
        'ddl' as evidence,
        concat(binlog_file, ':', start_pos) as evidence_id,
        transform(
            columns,
            col -> struct(
                col.name as name,
                lower(col.data_type) as data_type,
                col.column_type as column_type,
                coalesce(
                    col.character_set,
                    case when {{ has_character_set('lower(col.data_type)') }} then character_set end
                ) as character_set,
                -- For a TIMESTAMP without NULL or NOT NULL, a server setting decides.
                if(lower(col.data_type) = 'timestamp' and col.is_nullable, null, col.is_nullable) as is_nullable,
                coalesce(array_contains(transform(key_columns, key -> lower(key)), lower(col.name)), false)
                    as is_primary_key
            )
        ) as columns,
        column_name,
        place,
        after_column,
        transform(key_columns, key -> lower(key)) as key_columns,
        character_set,
        coalesce(is_conditional, false) as is_conditional,
        epoch,
        file_sequence,
        pos,
        binlog_file,
        cast(null as timestamp) as taken_at,
        payload_ordinal,
        action_ordinal
    from from_statements
    union all
    select
        source_id,
        schema_name,
        table_name,
        cast(null as string) as other_schema_name,
        cast(null as string) as other_table_name,
        'doubt' as action,
        'hole' as evidence,
        cast(null as string) as evidence_id,
        null as columns,
        cast(null as string) as column_name,
        cast(null as string) as place,
        cast(null as string) as after_column,
        cast(null as array<string>) as key_columns,
        cast(null as string) as character_set,
        false as is_conditional,
        epoch,
        file_sequence,
        segment_start as pos,
        binlog_file,
        cast(null as timestamp) as taken_at,
        -1 as payload_ordinal,
        -1 as action_ordinal
    from doubts

),

numbered as (

    select
        *,
        -- A snapshot at the end of a statement shows the result of the statement, so it comes after it.
        row_number() over (
            partition by source_id
            order by
                epoch, file_sequence, pos, evidence, payload_ordinal, action_ordinal, taken_at, evidence_id,
                schema_name, table_name
        ) as number
    from unioned

),

-- Tables in a RENAME or CREATE LIKE are followed together, every other table by itself.
linked_tables as (

    select
        source_id,
        schema_name,
        table_name
    from placed_actions
    where action in ('rename_table', 'create_like')
    union
    select
        source_id,
        other_schema_name as schema_name,
        other_table_name as table_name
    from placed_actions
    where action in ('rename_table', 'create_like')

),

compared as (

    select /*+ broadcast(linked_tables) */
        numbered.*,
        if(linked_tables.table_name is null, to_json(struct(numbered.schema_name, numbered.table_name)), '') as family,
        lag(struct(numbered.action, numbered.columns)) over (
            partition by numbered.source_id, numbered.schema_name, numbered.table_name order by numbered.number
        ) as before
    from numbered
    left join linked_tables
        on
            numbered.source_id = linked_tables.source_id
            and numbered.schema_name = linked_tables.schema_name
            and numbered.table_name = linked_tables.table_name

),

final as (

    select * except (before)
    from compared
    -- A snapshot that shows the same columns as the previous snapshot adds nothing.
    where
        family = ''
        or action != 'observe'
        or not coalesce(before.action = 'observe' and before.columns = columns, false)

)

select * from final
