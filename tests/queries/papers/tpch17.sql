select sum(l.l_extendedprice) as revenue
from lineitem l, part p
where p.p_partkey = l.l_partkey
  and l.l_quantity < 0.005 * (
      select sum(l2.l_quantity)
      from lineitem l2
      where l2.l_partkey = p.p_partkey
  )
