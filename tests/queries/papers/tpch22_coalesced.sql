select c1.c_nationkey, sum(c1.c_acctbal) as acctbal
from customer c1
where c1.c_acctbal < (
        select coalesce(sum(c2.c_acctbal), 0)
        from customer c2
        where c2.c_acctbal > 0
    )
  and 0 = (
        select coalesce(sum(1), 0)
        from orders o
        where o.o_custkey = c1.c_custkey
    )
group by c1.c_nationkey
