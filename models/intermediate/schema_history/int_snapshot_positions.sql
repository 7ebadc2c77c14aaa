with

schema_snapshots as (

    select * from {{ ref('stg_binlog__schema_snapshots') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

sources as (

    select * from {{ ref('stg_binlog__sources') }}

),

-- Only snapshots by `binloom follow` record the epoch; others have just the file. After a failover two epochs can have
-- files of the same name: the right epoch is the one whose file was being written when the snapshot was taken.
epochs_by_file as (

    select
        schema_snapshots.source_id,
        schema_snapshots.snapshot_id,
        max_by(binlog_files.epoch, struct(binlog_files.first_event_at, binlog_files.epoch)) as epoch
    from schema_snapshots
    inner join binlog_files
        on
            schema_snapshots.source_id = binlog_files.source_id
            and schema_snapshots.binlog_file = binlog_files.binlog_file
            and schema_snapshots.taken_at >= binlog_files.first_event_at
    group by schema_snapshots.source_id, schema_snapshots.snapshot_id

),

-- For a file that has not been landed: the epoch that was open by then.
epochs_by_time as (

    select
        schema_snapshots.source_id,
        schema_snapshots.snapshot_id,
        max(sources.epoch) filter (where sources.opened_at <= schema_snapshots.taken_at) as open_epoch,
        min(sources.epoch) as first_epoch
    from schema_snapshots
    inner join sources on schema_snapshots.source_id = sources.source_id
    group by schema_snapshots.source_id, schema_snapshots.snapshot_id

),

final as (

    select
        schema_snapshots.source_id,
        schema_snapshots.snapshot_id,
        schema_snapshots.taken_at,
        case
            when schema_snapshots.binlog_pos is not null
                then coalesce(
                    schema_snapshots.epoch,
                    epochs_by_file.epoch,
                    epochs_by_time.open_epoch,
                    epochs_by_time.first_epoch,
                    0
                )
        end as epoch,
        case when schema_snapshots.binlog_pos is not null then schema_snapshots.binlog_file end as binlog_file,
        case
            when schema_snapshots.binlog_pos is not null then {{ file_sequence('schema_snapshots.binlog_file') }}
        end as file_sequence,
        schema_snapshots.binlog_pos as pos
    from schema_snapshots
    left join epochs_by_file
        on
            schema_snapshots.source_id = epochs_by_file.source_id
            and schema_snapshots.snapshot_id = epochs_by_file.snapshot_id
    left join epochs_by_time
        on
            schema_snapshots.source_id = epochs_by_time.source_id
            and schema_snapshots.snapshot_id = epochs_by_time.snapshot_id

)

select * from final
