with

statement_format_changes as (

    select * from {{ ref('int_statement_format_changes') }}
    where statements > 0

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

positioned as (

    select /*+ broadcast(completed_segments) */
        statement_format_changes.*,
        struct(
            statement_format_changes.epoch,
            completed_segments.file_sequence,
            statement_format_changes.first_pos as pos,
            statement_format_changes.binlog_file
        ) as first_position,
        struct(
            statement_format_changes.epoch,
            completed_segments.file_sequence,
            statement_format_changes.last_pos as pos,
            statement_format_changes.binlog_file
        ) as last_position
    from statement_format_changes
    inner join completed_segments
        on {{ same_segment('statement_format_changes', 'completed_segments') }}

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        verb,
        sum(statements) as statements,
        min(first_position).epoch as first_epoch,
        min(first_position).binlog_file as first_binlog_file,
        min(first_position).pos as first_pos,
        max(last_position).epoch as last_epoch,
        max(last_position).binlog_file as last_binlog_file,
        max(last_position).pos as last_pos,
        min(first_event_at) as first_event_at,
        max(last_event_at) as last_event_at
    from positioned
    group by source_id, schema_name, table_name, verb

)

select * from final
