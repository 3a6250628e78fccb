create table raw.orders (order_id int, customer_id int, ordered_at timestamp, status string, amount decimal(10,2));

with numbered as (
  select customer_id, status, amount,
         row_number() over (partition by customer_id order by ordered_at desc) as place -- newest first
  from raw.orders
)
select customer_id, max_by(status, amount) as status_of_largest, collect_list(amount) as amounts
from numbered
where place <= 3
group by customer_id
