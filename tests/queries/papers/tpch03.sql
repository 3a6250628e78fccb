select o.o_orderkey, o.o_orderdate, o.o_shippriority, sum(l.l_extendedprice * (1 - l.l_discount)) as revenue
from customer c, orders o, lineitem l
where c.c_mktsegment = 'BUILDING'
  and o.o_custkey = c.c_custkey
  and l.l_orderkey = o.o_orderkey
  and o.o_orderdate < date '1995-03-15'
  and l.l_shipdate > date '1995-03-15'
group by o.o_orderkey, o.o_orderdate, o.o_shippriority
