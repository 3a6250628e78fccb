-- No row in Spark, ever: a customer without orders has a sum that is NULL, and NULL is not 0.
select c1.c_nationkey, sum(c1.c_acctbal) as acctbal
from customer c1
where c1.c_acctbal < (
        select sum(c2.c_acctbal)
        from customer c2
        where c2.c_acctbal > 0
    )
  and 0 = (
        select sum(1)
        from orders o
        where o.o_custkey = c1.c_custkey
    )
group by c1.c_nationkey
