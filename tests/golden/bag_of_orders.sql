-- No aggregate: the state is a bag of rows in hash buckets, a constant is not stored.
create table raw.orders (id bigint, customer int, amount decimal(12,2));
create table raw.customers (customer int primary key, segment string);

select o.id, upper(c.segment) as `Segment`, o.amount, 'web' as channel
from raw.orders o
join raw.customers c using (customer)
where o.amount > 0;
