-- How many customers have how many orders: an aggregate over an aggregate, affected keys below.
create table raw.orders (id bigint, customer int);

select orders, count(*) as customers
from (select customer, count(*) as orders from raw.orders group by customer) per_customer
group by orders;
