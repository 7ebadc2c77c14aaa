with

row_changes as (

    select * from {{ ref('row_changes') }}

),

-- The positions, not the identifier that is made of them: numbers are grouped at a fraction of the cost.
final as (

    select
        source_id,
        epoch,
        binlog_file,
        start_pos,
        payload_ordinal,
        row_ordinal,
        count(*) as occurrences
    from row_changes
    group by
        source_id,
        epoch,
        binlog_file,
        start_pos,
        payload_ordinal,
        row_ordinal
    having count(*) > 1

)

select * from final
