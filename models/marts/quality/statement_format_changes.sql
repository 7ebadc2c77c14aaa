with

statements as (

    select * from {{ ref('stg_binlog__statements') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

-- The text that a ROWS_QUERY or ANNOTATE event says of rows that follow it is no change beside them.
executed as (

    select
        *,
        {{ bare_statement('sql_text') }} as statement
    from statements
    where kind in ('QUERY', 'LOAD')

),

parsed as (

    select
        *,
        -- A stored function that changes rows is logged as the call of it.
        if(statement rlike r'(?i)^select\b', 'select', {{ dml_part('statement', 'head') }}) as head,
        if(statement rlike r'(?i)^select\b', null, {{ dml_part('statement', 'first_name') }}) as first_name,
        {{ dml_part('statement', 'second_name') }} as second_name
    from executed

),

changes as (

    select
        *,
        upper(regexp_extract(head, r'^\w+', 0)) as verb,
        {{ unquoted_name('first_name') }} as possible_alias,
        -- Where a DELETE says what its tables are called.
        regexp_extract(statement, r'(?is)^(.*?)(?:\bwhere\b|$)') as before_where
    from parsed
    where
        head is not null
        -- CREATE TABLE fills the table only with SELECT, which may also stand in a comment or the name of a column.
        and (
            not head rlike '(?i)^create'
            or regexp_replace(
                regexp_replace(statement, r'\\.', ''), r'\x27[^\x27]*\x27|"[^"]*"|`[^`]*`|{{ sql_gap() }}', ' '
            ) rlike r'(?i)\bselect\b'
        )

),

-- DELETE from several tables may name one by its alias.
resolved as (

    select
        *,
        case
            when
                verb = 'DELETE'
                and second_name is null
                and (not head rlike '(?i)from$' or before_where rlike r'(?i)\busing\b')
                then struct(
                    {{ aliased_table_part('before_where', 'possible_alias', 'first_name') }} as first_name,
                    {{ aliased_table_part('before_where', 'possible_alias', 'second_name') }} as second_name
                )
        end as aliased
    from changes

),

named as (

    select
        *,
        coalesce(aliased.first_name, first_name) as leading_name,
        if(aliased.first_name is null, second_name, aliased.second_name) as following_name
    from resolved

),

positioned as (

    select /*+ broadcast(completed_segments) */
        named.source_id,
        case
            when named.following_name is not null then {{ unquoted_name('named.leading_name') }}
            when named.leading_name is not null then named.default_schema
        end as schema_name,
        {{ unquoted_name('coalesce(named.following_name, named.leading_name)') }} as table_name,
        case named.verb
            when 'LOAD' then 'LOAD DATA'
            when 'CREATE' then 'CREATE TABLE SELECT'
            else named.verb
        end as verb,
        named.event_timestamp,
        struct(
            named.epoch,
            completed_segments.file_sequence,
            named.start_pos,
            named.payload_ordinal,
            named.binlog_file
        ) as position
    from named
    inner join completed_segments
        on {{ same_segment('named', 'completed_segments') }}

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        verb,
        count(*) as statements,
        min(position).epoch as first_epoch,
        min(position).binlog_file as first_binlog_file,
        min(position).start_pos as first_pos,
        max(position).epoch as last_epoch,
        max(position).binlog_file as last_binlog_file,
        max(position).start_pos as last_pos,
        min(event_timestamp) as first_event_at,
        max(event_timestamp) as last_event_at
    from positioned
    group by source_id, schema_name, table_name, verb

)

select * from final
