{{ config(severity='warn') }}

-- Each row is a connection that cancelled many orders in one second.
select
    thread_id,
    cancelled_at,
    count(*) as orders
from {{ ref('cancelled_orders') }}
group by thread_id, cancelled_at
having count(*) > 20
