-- A proof: each row is a violation, so the model must be empty.
select
    orders.id as order_id,
    orders.customer_id
from {{ ref('shop__orders__shop_mysql') }} as orders
left anti join {{ ref('shop__customers__shop_mysql__history') }} as customers
    on orders.customer_id = customers.id
