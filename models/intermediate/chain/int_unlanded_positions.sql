{{ config(materialized='view') }}

with

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

segments as (

    select * from {{ ref('stg_binlog__segments') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

quarantined_row_events as (

    select * from {{ ref('quarantined_row_events') }}

),

stream_gaps as (

    select * from {{ ref('stg_binlog__stream_gaps') }}

),

uncovered_bytes as (

    select * from {{ ref('uncovered_bytes') }}

),

unsupported_events as (

    select * from {{ ref('stg_binlog__unsupported_events') }}

),

following_files as (

    select
        source_id,
        epoch,
        file_sequence,
        lead(file_sequence) over (partition by source_id, epoch order by file_sequence) as next_file_sequence
    from completed_segments
    group by source_id, epoch, file_sequence

),

final as (

    select
        source_id,
        struct(epoch, file_sequence + 1 as file_sequence, 0L as start_pos) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from following_files
    where next_file_sequence > file_sequence + 1

    union all

    select
        segments.source_id,
        struct(
            segments.epoch,
            coalesce(binlog_files.file_sequence, {{ file_sequence('segments.binlog_file') }}) as file_sequence,
            segments.segment_start as start_pos
        ) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from segments
    left join binlog_files
        on
            segments.source_id = binlog_files.source_id
            and segments.epoch = binlog_files.epoch
            and segments.binlog_file = binlog_files.binlog_file
    where segments.is_current and segments.status in ('failed', 'in_progress', 'skipped')

    union all

    select
        source_id,
        struct(epoch, file_sequence, start_pos) as position,
        schema_name,
        table_name
    from quarantined_row_events

    union all

    select
        unsupported_events.source_id,
        struct(
            unsupported_events.epoch,
            {{ file_sequence('unsupported_events.binlog_file') }} as file_sequence,
            unsupported_events.start_pos
        ) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from unsupported_events
    where event_type = 'INCIDENT'

    union all

    select
        source_id,
        struct(
            from_epoch as epoch, {{ file_sequence('from_file') }} as file_sequence, from_pos as start_pos
        ) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from stream_gaps
    where status != 'filled'

    union all

    select
        source_id,
        struct(epoch, {{ file_sequence('binlog_file') }} as file_sequence, range_start as start_pos) as position,
        cast(null as string) as schema_name,
        cast(null as string) as table_name
    from uncovered_bytes
    where defect != 'overlap'

)

select * from final
