select ps.ps_partkey, sum(ps.ps_supplycost * ps.ps_availqty) as value
from partsupp ps, supplier s
where ps.ps_suppkey = s.s_suppkey
group by ps.ps_partkey
