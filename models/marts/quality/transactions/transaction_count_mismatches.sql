with

transaction_checks as (

    select * from {{ ref('int_transaction_checks') }}

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        transaction_pos,
        row_events_of_transaction,
        row_events_landed,
        has_transaction
    from transaction_checks
    where
        is_landed_twice
        -- With a table filter, some rows of a transaction were deliberately not landed.
        or (not has_all_row_events and table_filter is null)

)

select * from final
