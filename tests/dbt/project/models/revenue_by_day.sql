select o.ordered_on, c.segment, count(*) as orders, sum(o.amount) as revenue, avg(o.amount) as mean_amount
from {{ source('raw', 'orders') }} o join {{ ref('customers') }} c on o.customer_id = c.customer_id
where o.amount > 0
group by o.ordered_on, c.segment
