{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_landed_files', 'fingerprint': 'segments', 'has_rows': 'transactions > 0'}},
    )
}}

{%- set parts = stale_parts() -%}

-- depends_on: {{ ref('int_landed_files') }}

with

statements as (

    select * from {{ ref('stg_binlog__statements') }}
    where {{ in_files(parts) }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}
    where {{ in_files(parts) }}

),

ddl_actions as (

    select * from {{ ref('stg_binlog__ddl_actions') }}
    where {{ in_files(parts) }}

),

transactions as (

    select * from {{ ref('stg_binlog__transactions') }}
    where {{ in_files(parts) }}

),

-- Statements that change a schema and no rows.
ddl as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        payload_ordinal
    from ddl_actions
    group by
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        payload_ordinal
    having not bool_or(action = 'create_select')

),

-- An older binloom did not land the targets: a word in the text is the only sign that a statement changes rows.
without_targets as (

    select statements.*
    from statements
    left anti join ddl
        on
            {{ same_segment('statements', 'ddl') }}
            and statements.start_pos = ddl.start_pos
            and statements.payload_ordinal = ddl.payload_ordinal
    where
        statements.dml_targets is null
        and statements.kind in ('QUERY', 'LOAD')
        and statements.sql_text rlike r'(?i)\b(insert|replace|update|delete|load|select)\b'

),

-- An older binloom did not land which rows they took back: any row of their transaction.
without_ranges as (

    select statements.*
    from statements
    inner join transactions
        on
            {{ same_segment('statements', 'transactions') }}
            and statements.transaction_pos = transactions.start_pos
    where
        transactions.rolled_back_ranges is null
        and statements.kind = 'QUERY'
        and statements.sql_text rlike r'(?is)^\s*(/\*.*?\*/\s*)*rollback\s+(work\s+)?to\s'

),

targets as (

    select
        *,
        explode(dml_targets) as target
    from statements

),

changes as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        event_timestamp,
        target.verb,
        target.schema_name,
        target.table_name
    from targets

    union all

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        event_timestamp,
        cast(null as string) as verb,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from (
        select * from without_targets
        union all
        select * from without_ranges
    ) as unrecorded

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
    from changes
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
