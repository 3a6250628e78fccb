-- A subquery with HAVING joined back to its relation, and a total beside every row.
create table raw.orders (id bigint, customer int, amount decimal(12,2));

select o.customer, o.id, o.amount, big.total
from raw.orders o
join (select customer, sum(amount) as total from raw.orders group by customer having count(*) > 1) big
  on o.customer = big.customer;
