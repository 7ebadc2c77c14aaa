{{ config(materialized='table') }}

with

changes as (

    select * from {{ ref('shop__orders__shop_mysql__changes') }}

),

final as (

    select
        change_id,
        after_id as order_id,
        before_status as status_before,
        after_total as total,
        committed_at as cancelled_at,
        thread_id
    from changes
    where
        after_status = 'cancelled'
        and before_status != 'cancelled'

)

select * from final
