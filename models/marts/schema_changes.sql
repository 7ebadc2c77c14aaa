with

statements as (

    select * from {{ ref('stg_binlog__statements') }}

),

ddl_actions as (

    select * from {{ ref('stg_binlog__ddl_actions') }}

),

transactions as (

    select * from {{ ref('stg_binlog__transactions') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

described as (

    select
        *,
        case
            when table_name is not null then concat_ws('.', schema_name, table_name)
        end as changed_table,
        case
            when action in ('rename_table', 'exchange_partition')
                then concat_ws('.', other_schema_name, other_table_name)
        end as other_changed_table,
        concat_ws(
            ' ',
            action,
            column_name,
            nullif(
                array_join(
                    transform(columns, defined -> concat_ws(' ', defined.name, defined.column_type)), ', '
                ),
                ''
            ),
            place,
            after_column,
            nullif(concat_ws('.', other_schema_name, other_table_name), ''),
            if(cardinality(key_columns) > 0, concat('(', array_join(key_columns, ', '), ')'), null),
            character_set,
            detail
        ) as description
    from ddl_actions

),

-- The steps of a statement in their order, as one row.
changes as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        payload_ordinal,
        min_by(statement_type, action_ordinal) as statement_type,
        min_by(schema_name, action_ordinal) as schema_name,
        min_by(table_name, action_ordinal) as table_name,
        array_sort(
            collect_list(
                struct(
                    action_ordinal, description, array_compact(array(changed_table, other_changed_table)) as tables
                )
            )
        ) as steps,
        bool_and(action != 'not_understood') as is_understood,
        bool_or(
            action in ('drop_table', 'drop_database', 'truncate_table', 'drop_partition', 'truncate_partition')
            and statement_type != 'DROP SEQUENCE'
        ) as destroys_rows
    from described
    group by source_id, epoch, binlog_file, segment_start, start_pos, payload_ordinal

),

final as (

    select /*+ broadcast(completed_segments) */
        concat_ws(
            '/', statements.source_id, statements.epoch, statements.binlog_file, statements.start_pos,
            statements.payload_ordinal
        ) as schema_change_id,
        statements.source_id,
        statements.epoch,
        statements.binlog_file,
        completed_segments.file_sequence,
        statements.start_pos,
        statements.end_pos,
        statements.payload_ordinal,
        statements.transaction_pos,
        transactions.gtid,
        statements.thread_id,
        changes.statement_type,
        changes.schema_name,
        changes.table_name,
        transform(changes.steps, step -> step.description) as actions,
        array_distinct(flatten(transform(changes.steps, step -> step.tables))) as tables,
        statements.default_schema,
        statements.error_code,
        statements.sql_text,
        changes.is_understood,
        changes.destroys_rows,
        statements.event_timestamp
    from changes
    inner join statements
        on
            {{ same_segment('changes', 'statements') }}
            and changes.start_pos = statements.start_pos
            and changes.payload_ordinal = statements.payload_ordinal
    inner join completed_segments
        on {{ same_segment('statements', 'completed_segments') }}
    left join transactions
        on
            statements.source_id = transactions.source_id
            and statements.epoch = transactions.epoch
            and statements.binlog_file = transactions.binlog_file
            and statements.transaction_pos = transactions.start_pos

)

select * from final
