with

ddl_actions as (

    select * from {{ ref('stg_binlog__ddl_actions') }}
    where action = 'not_understood'

),

statements as (

    select * from {{ ref('stg_binlog__statements') }}

),

final as (

    select
        ddl_actions.source_id,
        ddl_actions.epoch,
        ddl_actions.binlog_file,
        ddl_actions.start_pos,
        ddl_actions.end_pos,
        ddl_actions.payload_ordinal,
        ddl_actions.statement_type,
        ddl_actions.schema_name,
        ddl_actions.table_name,
        statements.default_schema,
        statements.thread_id,
        statements.sql_text,
        ddl_actions.detail,
        case
            when ddl_actions.table_name is null
                then 'Read the statement: if it changes columns of a table, land a schema snapshot from after it.'
            else concat(
                'Land a schema snapshot from after it: the columns of ',
                concat_ws('.', ddl_actions.schema_name, ddl_actions.table_name),
                ' are uncertain from here on.'
            )
        end as what_to_do,
        statements.event_timestamp
    from ddl_actions
    inner join statements
        on
            {{ same_segment('ddl_actions', 'statements') }}
            and ddl_actions.start_pos = statements.start_pos
            and ddl_actions.payload_ordinal = statements.payload_ordinal

)

select * from final
