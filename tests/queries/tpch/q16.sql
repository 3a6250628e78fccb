-- Parts/supplier relationship: BRAND = Brand#45, TYPE = MEDIUM POLISHED, SIZE1 to SIZE8.
select p.p_brand, p.p_type, p.p_size, count(distinct ps.ps_suppkey) as supplier_cnt
from partsupp ps, part p
where p.p_partkey = ps.ps_partkey
  and p.p_brand <> 'Brand#45'
  and p.p_type not like 'MEDIUM POLISHED%'
  and p.p_size in (49, 14, 23, 45, 19, 3, 36, 9)
  and ps.ps_suppkey not in (
      select s_suppkey
      from supplier
      where s_comment like '%Customer%Complaints%'
  )
group by p.p_brand, p.p_type, p.p_size
