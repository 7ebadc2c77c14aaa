with

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

segments as (

    select * from {{ ref('stg_binlog__segments') }}
    where is_current and status = 'failed'

),

file_breaks as (

    select * from {{ ref('file_breaks') }}

),

stream_gaps as (

    select * from {{ ref('stg_binlog__stream_gaps') }}
    where status = 'accepted'

),

hours as (

    select /*+ broadcast(completed_segments) */
        row_event_counts.source_id,
        row_event_counts.event_hour,
        min(struct(row_event_counts.epoch, completed_segments.file_sequence)) as first_file,
        max(struct(row_event_counts.epoch, completed_segments.file_sequence)) as last_file
    from row_event_counts
    inner join completed_segments
        on {{ same_segment('row_event_counts', 'completed_segments') }}
    group by row_event_counts.source_id, row_event_counts.event_hour

),

followed as (

    select
        source_id,
        to_timestamp(event_hour, 'yyyy-MM-dd-HH') as hour_before,
        last_file as file_before,
        lead(to_timestamp(event_hour, 'yyyy-MM-dd-HH')) over series as hour_behind,
        lead(first_file) over series as file_behind
    from hours
    window series as (partition by source_id order by event_hour)

),

stretches as (

    select
        *,
        (unix_timestamp(hour_behind) - unix_timestamp(hour_before)) div 3600 - 1 as hours
    from followed
    where hour_behind > hour_before + interval 1 hour

),

-- Places where data is known to be missing: after one file, up to another.
known_gaps as (

    select
        source_id,
        'missing_files' as reason,
        struct(epoch, {{ file_sequence('binlog_file') }}) as gap_from,
        struct(following_epoch, {{ file_sequence('following_binlog_file') }}) as gap_to
    from file_breaks

    union all

    select
        source_id,
        'failed_segment' as reason,
        struct(epoch, {{ file_sequence('binlog_file') }}) as gap_from,
        struct(epoch, {{ file_sequence('binlog_file') }}) as gap_to
    from segments

    union all

    select
        source_id,
        'stream_gap' as reason,
        struct(coalesce(from_epoch, 0), {{ file_sequence('from_file') }}) as gap_from,
        struct(to_epoch, {{ file_sequence('to_file') }}) as gap_to
    from stream_gaps

),

explained as (

    select
        stretches.source_id,
        stretches.hour_before,
        stretches.hour_behind,
        stretches.hours,
        min(known_gaps.reason) as reason
    from stretches
    left join known_gaps
        on
            stretches.source_id = known_gaps.source_id
            and stretches.file_before <= known_gaps.gap_from
            and stretches.file_behind >= known_gaps.gap_to
    group by
        stretches.source_id,
        stretches.hour_before,
        stretches.hour_behind,
        stretches.hours

),

final as (

    select
        source_id,
        {{ event_hour('hour_before + interval 1 hour') }} as first_hour,
        {{ event_hour('hour_behind - interval 1 hour') }} as last_hour,
        hours,
        coalesce(reason, 'expected') as reason
    from explained
    where reason is not null or {{ var('expect_changes_every_hour') }}

)

select * from final
