with

statements as (

    select * from {{ ref('stg_binlog__statements') }}

),

transactions as (

    select * from {{ ref('stg_binlog__transactions') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

queries as (

    select
        *,
        {{ bare_statement('sql_text') }} as statement
    from statements
    where kind = 'QUERY'

),

parsed as (

    select
        *,
        upper({{ ddl_part('statement', 'verb') }}) as verb,
        upper({{ ddl_part('statement', 'object_type') }}) as named_object_type,
        {{ ddl_part('statement', 'first_name') }} as first_name,
        {{ ddl_part('statement', 'second_name') }} as second_name,
        {{ ddl_part('statement', 'first_name_after_on') }} as first_name_after_on,
        {{ ddl_part('statement', 'second_name_after_on') }} as second_name_after_on
    from queries

),

-- TABLE is optional in TRUNCATE. An index or trigger changes the table that stands behind ON.
objects as (

    select
        *,
        case
            when verb = 'TRUNCATE' then 'TABLE'
            when named_object_type = 'SCHEMA' then 'DATABASE'
            else named_object_type
        end as object_type,
        if(named_object_type in ('INDEX', 'TRIGGER'), first_name_after_on, first_name) as leading_name,
        if(named_object_type in ('INDEX', 'TRIGGER'), second_name_after_on, second_name) as following_name
    from parsed
    where verb is not null

),

final as (

    select /*+ broadcast(completed_segments) */
        concat_ws(
            '/', objects.source_id, objects.epoch, objects.binlog_file, objects.start_pos, objects.payload_ordinal
        ) as schema_change_id,
        objects.source_id,
        objects.epoch,
        objects.binlog_file,
        completed_segments.file_sequence,
        objects.start_pos,
        objects.end_pos,
        objects.payload_ordinal,
        objects.transaction_pos,
        transactions.gtid,
        objects.thread_id,
        concat_ws(' ', objects.verb, objects.object_type) as statement_type,
        case
            when objects.object_type = 'DATABASE' then {{ unquoted_name('objects.leading_name') }}
            when objects.following_name is not null then {{ unquoted_name('objects.leading_name') }}
            when objects.object_type in ('USER', 'ROLE', 'TABLESPACE', 'SERVER') then null
            else objects.default_schema
        end as schema_name,
        case
            when coalesce(objects.object_type, '') in ('TABLE', 'INDEX', 'TRIGGER', 'VIEW', 'SEQUENCE')
                then {{ unquoted_name('coalesce(objects.following_name, objects.leading_name)') }}
        end as table_name,
        objects.default_schema,
        objects.error_code,
        objects.sql_text,
        (
            objects.verb in ('DROP', 'TRUNCATE')
            and objects.object_type in ('TABLE', 'DATABASE')
            and not objects.statement rlike r'(?i)^drop\s+temporary\b'
        )
        or (
            objects.verb = 'ALTER'
            and objects.statement rlike r'(?i)\b(?:drop|truncate)\s+partition\b'
        ) as destroys_rows,
        objects.event_timestamp
    from objects
    inner join completed_segments
        on {{ same_segment('objects', 'completed_segments') }}
    left join transactions
        on
            objects.source_id = transactions.source_id
            and objects.epoch = transactions.epoch
            and objects.binlog_file = transactions.binlog_file
            and objects.transaction_pos = transactions.start_pos

)

select * from final
