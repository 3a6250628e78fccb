-- Six relations of which the fact joins all the others; partitions by month.
create table raw.sales (day date, store int, item int, customer int, promo int, cashier int, amount decimal(10,2));
create table raw.stores (store int primary key, city string);
create table raw.items (item int primary key, brand string);
create table raw.customers (customer int primary key, segment string);
create table raw.promos (promo int primary key, kind string);
create table raw.cashiers (cashier int primary key, shift string);

select s.day, st.city, i.brand, c.segment, p.kind, ca.shift, sum(s.amount) as revenue, count(*) as sales
from raw.sales s
join raw.stores st on s.store = st.store
join raw.items i on s.item = i.item
join raw.customers c on s.customer = c.customer
join raw.promos p on s.promo = p.promo
join raw.cashiers ca on s.cashier = ca.cashier
group by s.day, st.city, i.brand, c.segment, p.kind, ca.shift;
