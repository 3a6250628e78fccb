-- Returned item reporting: DATE = 1993-10-01. All columns make the order total.
select
    c.c_custkey,
    c.c_name,
    sum(l.l_extendedprice * (1 - l.l_discount)) as revenue,
    c.c_acctbal,
    n.n_name,
    c.c_address,
    c.c_phone,
    c.c_comment
from customer c, orders o, lineitem l, nation n
where c.c_custkey = o.o_custkey
  and l.l_orderkey = o.o_orderkey
  and o.o_orderdate >= date '1993-10-01'
  and o.o_orderdate < date '1993-10-01' + interval '3' month
  and l.l_returnflag = 'R'
  and c.c_nationkey = n.n_nationkey
group by c.c_custkey, c.c_name, c.c_acctbal, c.c_phone, n.n_name, c.c_address, c.c_comment
order by revenue desc, c_custkey, c_name, c_acctbal, n_name, c_address, c_phone, c_comment
limit 20
