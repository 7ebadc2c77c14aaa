with

landed as (

    select * from {{ source('binlog', 'schema_histories') }}

),

-- Sets that were published before are kept for a while.
latest as (

    select
        source_id,
        max_by(struct(history_id, snapshot_epochs, published_at), published_at) as history
    from landed
    group by source_id

),

final as (

    select
        source_id,
        history.history_id,
        history.snapshot_epochs,
        history.published_at
    from latest

)

select * from final
