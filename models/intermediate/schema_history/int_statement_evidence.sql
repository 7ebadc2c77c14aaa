with

snapshot_evidence as (

    select * from {{ ref('int_snapshot_evidence') }}

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

-- Tables with the server's names, whatever names the statements use.
named_tables as (

    select
        source_id,
        schema_name,
        table_name
    from snapshot_evidence
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

-- A statement on a database, or on an unknown table, concerns every known table. One that renames a table to its own
-- name, perhaps only after the names are in lower case, changes nothing.
of_tables as (

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
    where
        coalesce(placed_actions.table_name, known_tables.table_name) is not null
        and not (
            placed_actions.action = 'rename_table'
            and placed_actions.schema_name <=> placed_actions.other_schema_name
            and placed_actions.table_name <=> placed_actions.other_table_name
        )

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        other_schema_name,
        other_table_name,
        action,
        concat(binlog_file, ':', start_pos) as statement_id,
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
        payload_ordinal,
        action_ordinal
    from of_tables

)

select * from final
