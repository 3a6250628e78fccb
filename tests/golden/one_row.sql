-- A global aggregate: one row even over nothing, one bucket.
create table raw.orders (id bigint, amount decimal(12,2), quantity int);

select count(*) as orders, sum(amount) as revenue, avg(amount) as average, sum(quantity) as pieces, avg(id) as middle
from raw.orders;
