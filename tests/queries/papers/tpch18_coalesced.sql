select c.c_custkey, sum(l1.l_quantity) as quantity
from customer c, orders o, lineitem l1
where 1 <= (
        select coalesce(sum(1), 0)
        from lineitem l2
        where l1.l_orderkey = l2.l_orderkey
          and 100 < (
              select coalesce(sum(l3.l_quantity), 0)
              from lineitem l3
              where l2.l_orderkey = l3.l_orderkey
          )
    )
  and c.c_custkey = o.o_custkey
  and o.o_orderkey = l1.l_orderkey
group by c.c_custkey
