select count(*) as orders, sum(amount) as revenue from {{ ref('order_amounts') }}
