with

transaction_checks as (

    select * from {{ ref('int_transaction_checks') }}

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos as start_pos,
        end_pos,
        gtid,
        row_events_of_transaction as row_events
    from transaction_checks
    where outcome = 'none'

)

select * from final
