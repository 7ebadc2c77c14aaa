with

row_changes as (

    select * from {{ ref('row_changes') }}

),

row_change_counts as (

    select * from {{ ref('int_row_change_counts') }}
    where duplicates > 0

),

-- Usually there are no such hours, and then nothing is read.
hours as (

    select distinct event_hour from row_change_counts

),

final as (

    select /*+ broadcast(hours) */
        row_changes.source_id,
        row_changes.epoch,
        row_changes.binlog_file,
        row_changes.start_pos,
        row_changes.payload_ordinal,
        row_changes.row_ordinal,
        count(*) as occurrences
    from row_changes
    inner join hours on row_changes.event_hour = hours.event_hour
    group by
        row_changes.source_id,
        row_changes.epoch,
        row_changes.binlog_file,
        row_changes.start_pos,
        row_changes.payload_ordinal,
        row_changes.row_ordinal
    having count(*) > 1

)

select * from final
