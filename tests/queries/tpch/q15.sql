-- Top supplier: DATE = 1996-01-01.
with revenue as (
    select l_suppkey as supplier_no, sum(l_extendedprice * (1 - l_discount)) as total_revenue
    from lineitem
    where l_shipdate >= date '1996-01-01'
      and l_shipdate < date '1996-01-01' + interval '3' month
    group by l_suppkey
)
select s.s_suppkey, s.s_name, s.s_address, s.s_phone, r.total_revenue
from supplier s, revenue r
where s.s_suppkey = r.supplier_no
  and r.total_revenue = (select max(total_revenue) from revenue)
