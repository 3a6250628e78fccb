select
    sn.n_regionkey as supplier_region,
    cn.n_regionkey as customer_region,
    p.p_type,
    sum(l.l_quantity) as quantity
from customer c, orders o, lineitem l, part p, supplier s, nation cn, nation sn
where c.c_custkey = o.o_custkey
  and o.o_orderkey = l.l_orderkey
  and p.p_partkey = l.l_partkey
  and s.s_suppkey = l.l_suppkey
  and o.o_orderdate >= date '1997-01-01'
  and o.o_orderdate < date '1998-01-01'
  and cn.n_nationkey = c.c_nationkey
  and sn.n_nationkey = s.s_nationkey
group by sn.n_regionkey, cn.n_regionkey, p.p_type
