{{ config(materialized='view') }}

with

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

xa_transactions as (

    select * from {{ ref('int_xa_transactions') }}

),

segments_by_file as (

    select
        source_id,
        epoch,
        binlog_file,
        file_sequence,
        file_number,
        sum(transactions) as transactions,
        sum(row_events) as row_events,
        md5(array_join(array_sort(collect_list(concat_ws(' ', segment_start, landed_at))), ',')) as segments
    from completed_segments
    group by source_id, epoch, binlog_file, file_sequence, file_number

),

xa_ends_by_file as (

    select
        source_id,
        epoch,
        binlog_file,
        md5(
            array_join(
                array_sort(collect_list(concat_ws(' ', start_pos, xa_end_transaction_id, outcome, committed_at))), ','
            )
        ) as xa_ends
    from xa_transactions
    group by source_id, epoch, binlog_file

),

final as (

    select
        segments_by_file.source_id,
        segments_by_file.epoch,
        segments_by_file.binlog_file,
        segments_by_file.file_sequence,
        segments_by_file.file_number,
        segments_by_file.transactions,
        segments_by_file.row_events,
        segments_by_file.segments,
        concat_ws(' ', segments_by_file.segments, xa_ends_by_file.xa_ends) as with_xa_ends
    from segments_by_file
    left join xa_ends_by_file
        on
            segments_by_file.source_id = xa_ends_by_file.source_id
            and segments_by_file.epoch = xa_ends_by_file.epoch
            and segments_by_file.binlog_file = xa_ends_by_file.binlog_file

)

select * from final
