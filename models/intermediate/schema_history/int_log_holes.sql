with

snapshot_positions as (

    select * from {{ ref('int_snapshot_positions') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

landed_stretches as (

    select
        completed_segments.source_id,
        completed_segments.epoch,
        completed_segments.file_sequence,
        completed_segments.binlog_file,
        completed_segments.segment_start,
        completed_segments.segment_end,
        binlog_files.file_size
    from completed_segments
    left join binlog_files
        on
            completed_segments.source_id = binlog_files.source_id
            and completed_segments.epoch = binlog_files.epoch
            and completed_segments.binlog_file = binlog_files.binlog_file

),

-- Snapshots that were taken in a file without landed segments, or before its first: nothing tells what followed them.
unlanded_places as (

    select distinct
        snapshot_positions.source_id,
        snapshot_positions.epoch,
        snapshot_positions.file_sequence
    from snapshot_positions
    left anti join landed_stretches
        on
            snapshot_positions.source_id = landed_stretches.source_id
            and snapshot_positions.epoch = landed_stretches.epoch
            and snapshot_positions.file_sequence = landed_stretches.file_sequence
            and snapshot_positions.pos >= landed_stretches.segment_start
    where snapshot_positions.pos is not null

),

stretches as (

    select
        *,
        true as is_landed
    from landed_stretches
    union all
    select
        source_id,
        epoch,
        file_sequence,
        cast(null as string) as binlog_file,
        cast(null as bigint) as segment_start,
        cast(null as bigint) as segment_end,
        cast(null as bigint) as file_size,
        false as is_landed
    from unlanded_places

),

neighbours as (

    select
        *,
        lag(struct(epoch, file_sequence, segment_end, file_size)) over (
            partition by source_id order by epoch, file_sequence, segment_start
        ) as before
    from stretches

),

final as (

    select
        source_id,
        epoch,
        file_sequence,
        binlog_file,
        segment_start as pos
    from neighbours
    where
        is_landed
        and before is not null
        and not coalesce(
            before.epoch = epoch
            and (
                (before.file_sequence = file_sequence and before.segment_end >= segment_start)
                or (
                    before.file_sequence = file_sequence - 1
                    and before.segment_end >= before.file_size
                    and segment_start <= 4
                )
            ),
            false
        )

)

select * from final
