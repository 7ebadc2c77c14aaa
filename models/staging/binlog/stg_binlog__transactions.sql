with

landed as (

    {{ completed_segments_only(source('binlog', 'transactions')) }}

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        end_pos,
        gtid,
        xid,
        xa_xid,
        thread_id,
        server_id,
        started_at,
        committed_at,
        original_committed_at,
        is_ddl,
        outcome,
        events,
        row_events,
        inserts,
        updates,
        deletes,
        rolled_back_ranges
    from landed

)

select * from final
