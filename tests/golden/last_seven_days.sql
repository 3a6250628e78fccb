create table raw.orders (order_id int, customer_id int, ordered_on date, amount decimal(10,2));

select customer_id, count(*) as orders, sum(amount) as spent
from raw.orders
where ordered_on >= current_date() - interval 7 days
group by customer_id
