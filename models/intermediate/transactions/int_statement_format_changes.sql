{{
    config(
        materialized='incremental',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        pre_hook="{{ drop_gone_files('transactions') }}",
    )
}}

{%- set files = stale_files('transactions') if is_incremental() else none %}

with

statements as (

    select * from {{ ref('stg_binlog__statements') }}
    where {{ in_files(files) }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}
    where {{ in_files(files) }}

),

-- The text in a ROWS_QUERY or ANNOTATE event describes the row events after it and is no change of its own.
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
        -- A stored function that changes rows is logged as its call.
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
        -- The part of a DELETE that defines table aliases.
        regexp_extract(statement, r'(?is)^(.*?)(?:\bwhere\b|$)') as before_where
    from parsed
    where
        head is not null
        -- CREATE TABLE fills the table only with SELECT, a word that may also occur in a comment or a column name.
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

tables as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        case
            when following_name is not null then {{ unquoted_name('leading_name') }}
            when leading_name is not null then default_schema
        end as schema_name,
        {{ unquoted_name('coalesce(following_name, leading_name)') }} as table_name,
        case verb
            when 'LOAD' then 'LOAD DATA'
            when 'CREATE' then 'CREATE TABLE SELECT'
            else verb
        end as verb,
        event_timestamp,
        start_pos
    from named

),

counted as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        schema_name,
        table_name,
        verb,
        count(*) as statements,
        min(start_pos) as first_pos,
        max(start_pos) as last_pos,
        min(event_timestamp) as first_event_at,
        max(event_timestamp) as last_event_at
    from tables
    group by
        source_id,
        epoch,
        binlog_file,
        segment_start,
        schema_name,
        table_name,
        verb

),

-- A segment without such statements has a row too, as a record that it was read.
final as (

    select
        completed_segments.segment_start,
        counted.schema_name,
        counted.table_name,
        counted.verb,
        coalesce(counted.statements, 0) as statements,
        counted.first_pos,
        counted.last_pos,
        counted.first_event_at,
        counted.last_event_at,
        completed_segments.landed_at,
        completed_segments.source_id,
        completed_segments.epoch,
        completed_segments.binlog_file
    from completed_segments
    left join counted
        on {{ same_segment('completed_segments', 'counted') }}
    where completed_segments.transactions > 0

)

select * from final
