with

snapshot_evidence as (

    select * from {{ ref('int_snapshot_evidence') }}

),

statement_evidence as (

    select * from {{ ref('int_statement_evidence') }}

),

log_holes as (

    select * from {{ ref('int_log_holes') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

unnamed_tables as (

    select distinct
        source_id,
        schema_name,
        table_name
    from table_maps
    where exists(columns, col -> col.name is null)

),

-- A table's columns are uncertain after a part of the log that is not landed, and after a change of epoch.
doubts as (

    select
        log_holes.*,
        unnamed_tables.schema_name,
        unnamed_tables.table_name
    from log_holes
    inner join unnamed_tables on log_holes.source_id = unnamed_tables.source_id

),

unioned as (

    select
        source_id,
        schema_name,
        table_name,
        cast(null as string) as other_schema_name,
        cast(null as string) as other_table_name,
        action,
        'snapshot' as evidence,
        snapshot_id as evidence_id,
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
    from snapshot_evidence
    union all
    select
        source_id,
        schema_name,
        table_name,
        other_schema_name,
        other_table_name,
        action,
        'ddl' as evidence,
        statement_id as evidence_id,
        columns,
        column_name,
        place,
        after_column,
        key_columns,
        character_set,
        is_conditional,
        epoch,
        file_sequence,
        pos,
        binlog_file,
        cast(null as timestamp) as taken_at,
        payload_ordinal,
        action_ordinal
    from statement_evidence
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
        pos,
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

    select distinct
        source_id,
        inline(
            array(
                struct(schema_name, table_name),
                struct(other_schema_name as schema_name, other_table_name as table_name)
            )
        ) as (schema_name, table_name)
    from statement_evidence
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
