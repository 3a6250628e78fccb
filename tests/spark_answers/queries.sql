-- Queries whose answers Spark has given (answers.jsonl). One per line.
-- correlated totals over nothing
select id from o where exists (select max(x) from s where s.k = o.k)
select id from o where not exists (select max(x) from s where s.k = o.k)
select id from o where k in (select count(*) from s where s.k = o.k)
select id from o where k not in (select count(*) from s where s.k = o.k)
select id from o where k in (select max(x) from s where s.k = o.k)
select id from o where k not in (select max(x) from s where s.k = o.k)
select id from o where exists (select 1 from s where s.k = o.k having count(*) = 0)
select id, (select count(*) from s where s.k = o.k limit 1) as n from o
select id, (select count(*) from s where s.k = o.k group by grouping sets (())) as n from o
select id, n, z from o, lateral (select count(*) as n, 5 as z from s where s.k = o.k)
select id, n from o, lateral (select count(*) as n from s where s.k = o.k having count(*) = 0)
select id, n from o, lateral (select sum(count(*)) over () as n from s where s.k = o.k)
select id, (select collect_list(x) from s where s.k = o.k and x > 100) as l from o
select id, (select sort_array(collect_set(x)) from s where s.k = o.k) as l, (select sort_array(array_agg(x)) from s where s.k = o.k) as a from o
select id, (select x from s where s.k = o.k and s.x = 5) as x from o where k = 3
select id from o where exists (select 1 from s where s.k = o.k union all select 1 from q where q.k = o.k)
select id, y from o, lateral (select x as y from s where s.k = o.k union all select b from q where q.k = o.k)
select id, (select count(*) filter (where x > 5) from s where s.k = o.k) as n from o
select id, (select percentile_cont(0.5) within group (order by x) from s where s.k = o.k) as n from o
select id, exists (select max(x) from s where s.k = o.k) as e from o
select id from o where exists (select 1 from s where s.k = o.k limit 1) or id = 3
select o.k from o group by o.k having exists (select 1 from s where s.x > max(o.id) and s.k = o.k)
select o.k from o group by o.k having (select count(*) from s where s.x > max(o.id)) > 1
select id, (select sort_array(collect_set(struct(x, k))) from s where s.k = o.k) as l from o
-- IN and NOT IN as values and in conditions
select k, a, a in (select b from q) as i, a not in (select b from q) as j, not (a in (select b from q)) as n from r
select k, a, (a in (select b from q)) is null as i, a in (select b from q where q.k = r.k) as c, a not in (select b from q where q.k = r.k) as d from r
select k, a from r where not (a in (select b from q) and k = 1)
select k, a from r where (a in (select b from q)) = false
select k, a from r where a not in (select b from q where b is not null)
select k, a from r where (k, a) in (select k, b from q)
select k, a, a in (10, null) as i, a not in (10, null) as j, '10' in (a, 20) as t from r
-- names
select k as x, sum(a) as k from r group by k having k > 1
select a as k, k as a from r order by k, a limit 3
select k + 1 as a, a * 2 as b from r
select a + 1 as b, b * 2 as c from r
select k % 2 as p, count(*) as n from r group by p
select k, count(*) as c from r group by 1 having c > 1
select R.K, r.A from R
select * from o join s using (k)
select * from o left join s using (k)
select * from o right join s using (k)
select * from o full join s using (k)
select o.k as ok, s.k as sk, k from o full join s using (k)
select * from o natural join s
select * from (select k, id from o) natural full join (select k, x from s)
select s.*, id from o join s on o.k = s.k
select * except (k) from o
select t.* from values (1, 'a'), (2, null) as t
select col1, col2 from values (1, 2.5), (null, 3)
-- arithmetic and types
select 1 + 1 as a, 1 / 2 as b, 7 div 2 as c, -7 div 2 as d, -7 % 3 as e, 1.5 * 2 as f, 1 / 3.0 as g, 2147483647 + 1 as h, '1' + 1 as i, '3' / 2 as j
select d + 1 as p, d - a as m, d * d as t, d / 3 as q, d / d as r, d % 2 as e, a + w as z, x + d as y, a / k as h, d * 1.005 as u, w * w as v from r
select cast(9223372036854775807 as bigint) + 1 as a, cast(127 as tinyint) + cast(1 as tinyint) as b, -cast(-128 as tinyint) as c
select cast('99999999999999999999999999999999999999' as decimal(38,0)) + 1 as a, cast(1 as decimal(38,10)) * cast(1 as decimal(38,10)) as b, cast(1 as decimal(38,18)) / 3 as c
select cast('12' as int) as a, cast(' 12.7 ' as int) as b, cast('x' as int) as c, cast('300' as tinyint) as d, cast(300 as tinyint) as e, cast(1e20 as int) as f, cast('NaN' as double) as g, cast(1.5 as int) as h, cast(-1.5D as bigint) as i
select cast(1.0D as string) as a, cast(1e10 as string) as b, cast(1.5e-5 as string) as c, cast(cast(1.10 as decimal(5,2)) as string) as d, cast(true as string) as e, cast(date'2024-01-05' as string) as f, cast(timestamp'2024-01-05 10:00:00.5' as string) as g
select cast('t' as boolean) as a, cast('\t false \n' as boolean) as b, cast('maybe' as boolean) as c, cast(0 as boolean) as d, cast('2024-1-5' as date) as e, cast('2024-02-30' as date) as f, cast('2024-01-05 10:11' as timestamp) as g, cast('2024' as date) as h
select '1' = 1 as a, 'a' = 1 as b, '1.0' = 1 as c, '1.50' = 1.5 as d, 'true' = true as e, date'2024-01-01' = '2024-01-01' as f, null = 1 as g, null <=> null as h, 1 <=> null as i
select coalesce(a, 'none') as c, if(a > 10, a, 2.5) as i, case when f then 1 when a > 10 then 2.5 end as n, greatest(a, 1.5) as g, least(a, k, null) as l, nullif(a, 10) as z from r
select x, x = x as e, x > 5 as g, x < 5 as l, x + 0.0 as z, -x as m, x / 0 as d, a / 0 as i, a % 0 as r from r
select x, count(*) as n from r group by x
select distinct x from r
select r.k, q.k as qk from r join q on r.x = q.y
select max(x) as m, min(x) as n, sum(x) as s, avg(x) as a from r
select x from r order by x desc nulls last limit 2
select x in (select y from q) as i from r
select round(2.5) as a, round(-2.345, 2) as b, round(1.55D, 1) as c, round(25, -1) as d, bround(2.5) as e, floor(-1.5) as f, ceil(1.2) as g, floor(1.5D) as h, abs(-1.5) as i, sign(-2) as j, sqrt(-1) as k, ln(0) as l, pmod(-5, 3) as m, mod(5, -3) as n, power(2, 3) as o, log10(1000) as p
-- aggregates
select k, count(*) as n, count(a) as c, count(distinct a) as d, sum(a) as s, avg(a) as v, min(a) as lo, max(a) as hi, sum(d) as sd, avg(d) as vd from r group by k
select count(*) as n, sum(a) as s, avg(d) as v, max(g) as m, collect_list(a) as l, bool_and(f) as b, count_if(f) as c, bit_or(a) as o from r where k > 100
select k, sum(a) filter (where f) as s, count(*) filter (where a > 10) as n, sum(distinct a) as d, count(distinct a, g) as c from r group by k
select k, max_by(g, t) as m, min_by(a, t) as n, mode(a, true) as o, median(a) as e, percentile(a, 0.25) as p from r group by k
select percentile_cont(0.25) within group (order by a desc) as c, percentile_disc(0.25) within group (order by a desc) as d, mode() within group (order by k desc) as m, listagg(g, '-') within group (order by g) as l from r
select k, var_samp(a) as v, stddev_pop(a) as s, skewness(w) as w, corr(w, k) as c, covar_samp(w, k) as o, regr_slope(w, k) as b, regr_r2(w, k) as z from r group by k
select var_samp(w) as v, stddev_pop(w) as s, skewness(w) as sk, kurtosis(w) as ku, corr(w, k) as c, regr_slope(w, k) as b, regr_intercept(w, k) as i, regr_r2(w, k) as z, regr_count(w, k) as n from r
select sum(a) + count(*) as p, sum(a) / count(*) as q from r having count(*) > 1
select sum(w) as s, try_sum(w * 4611686018427387904) as t, sum(w * 4611686018427387904) as u from r
select sum(count(*)) over () as t, k, rank() over (order by count(*) desc) as p from r group by k
select min_by(g, if(a is null, null, named_struct('y', a, 'x', g))) as m, max_by(g, if(a is null, null, named_struct('y', a, 'x', g))) as n, min(named_struct('x', g)).x as lo, max(named_struct('x', g)).x as hi from r
-- grouping sets
select k, g, grouping(k) as gk, grouping_id() as i, sum(a) as s from r group by rollup (k, g)
select k, g, count(*) as n from r group by cube (k, g)
select k, count(*) as n from r where k > 100 group by rollup (k)
select count(*) as n from r where k > 100 group by grouping sets (())
select k, g, count(*) as n from r group by grouping sets ((k), (g), ())
select k, g, count(*) as n from r group by k, rollup (g)
select k, sum(k) as s from r group by rollup (k)
-- windows
select k, a, row_number() over (partition by k order by a, w) as n, rank() over (order by k) as r, dense_rank() over (order by k) as d, percent_rank() over (order by k) as p, cume_dist() over (order by k) as c, ntile(2) over (order by w) as t from r
select w, lag(a) over (order by w) as l, lead(a, 2, -1) over (order by w) as f, first_value(a) over (order by w) as v, last_value(a) ignore nulls over (order by w rows between unbounded preceding and 1 preceding) as z, nth_value(a, 2) over (order by w) as n from r
select w, sum(a) over (order by w rows between 1 preceding and 1 following) as s, avg(a) over (order by w rows unbounded preceding) as v, count(*) over (order by k) as c, max(a) over () as m, min(a) over (partition by k) as n from r
select w, sum(a) over (order by a range between 10 preceding and current row) as s, count(*) over (order by a desc range between 10 preceding and 5 following) as c from r
select dt, count(*) over (order by dt range between interval 31 days preceding and current row) as c, count(*) over (order by t range between interval 2 hours preceding and interval 1 hour following) as h from r
select w, sum(a) over z as s, row_number() over (partition by k order by w) as n from r window z as (partition by k)
select k, a from r qualify row_number() over (partition by k order by w desc) = 1
select k as a, a as k from r qualify row_number() over (order by k desc, w) = 1
select w, collect_list(a) over (order by w rows between 1 preceding and current row) as l from r
-- set operations, limits
select k from o union select k from s
select k from o union all select x from s union all select 2.5
select k from o intersect select k from s
select k from o except all select k from s
select k from o intersect all select k from s
select k from o union select k from s intersect select 3
select k from o except select 1 union all select 9
select null as a union all select 1
select dt as d from r union all select t from r
select a from r union select g from r
select k, a from r order by a nulls last, k limit 2 offset 1
select k, count(*) as n from r group by k order by count(*) desc, k limit 2
select distinct k from r order by k desc limit 2
(select k from o order by k desc limit 1) union all (select k from s order by k nulls last limit 1)
with c as (select k from o), d as (select k from c where k > 1) select c.k, d.k as e from c left join d on c.k = d.k
with recursive c as (select 1 as n union all select n + 1 from c where n < 4) select n from c
-- joins
select o.id, s.x from o left join s on o.k = s.k and s.x > 5
select o.id, s.x from o full join s on o.k < s.k
select o.id from o left semi join s on o.k = s.k
select o.id from o left anti join s on o.k = s.k
select o.id, s.x from o cross join s where o.k = s.k
select o.id, v.x from o left join lateral (select x from s where s.k = o.k order by x limit 1) v
select id, (select count(*) from (select x from s where s.k = o.k order by x limit 1)) as n from o
-- generators, pivots
select id, explode(array(id, k)) as e from o
select id, posexplode_outer(case when k > 1 then array(k, id) end) as (p, e) from o
select id, p, e from o lateral view outer posexplode(split(cast(k as string), '')) v as p, e
select stack(2, 'a', id, 'b', k) as (n, v) from o
select inline(array(struct(id, k), struct(id, 7 as k))) as (u, v) from o
select explode(map(id, k)) as (m, n) from o where id = 1
select * from (select k, g, a from r) pivot (sum(a) for g in ('a', 'b' as bb))
select * from (select k, g, a from r) pivot (count(a) as n, max(a) as m for g in ('a', 'b'))
select * from (select id, k from o) unpivot (v for n in (id, k))
select id from range(2, 8, 3)
-- times
select t + interval 1 month as a, dt + interval 1 month as b, dt - 1 as c, dt + interval 1 day as d, t - interval '1 2:03:04' day to second as e, add_months(dt, 1) as f, last_day(dt) as g, trunc(dt, 'MM') as h, date_trunc('week', t) as i, date_trunc('hour', n) as j from r
select year(dt) as y, quarter(t) as q, month(dt) as m, dayofweek(dt) as w, weekofyear(dt) as v, hour(t) as h, extract(second from t) as s, datediff(dt, date'2024-01-01') as d, months_between(dt, date'2024-01-15') as b, unix_timestamp(t) as u, date_format(t, 'yyyy-MM-dd HH:mm') as f from r
select t = n as e, cast(t as date) as d, cast(n as timestamp) as c, t > dt as g, cast('2024-01-31 10:00:00' as timestamp) = t as s from r
select to_date('05.01.2024', 'dd.MM.yyyy') as a, to_date('2024-1-5', 'yyyy-MM-dd') as b, to_timestamp('2024-01-05 10:11:12.345') as c
select window.start as b, window.end as e, count(*) as n from r group by window(t, '30 days', '10 days')
select session_window.start as b, session_window.end as e, count(*) as n from r group by session_window(t, '31 days')
-- strings, lists
select split('', '') as a, split('', ',') as b, split('ab', '') as c, split('a.b', '[.]', 1) as d
select substring('abc', 0, 2) as a, substring('abc', -2, 1) as b, split('a,b,', ',') as c, concat('a', null) as d, concat_ws('-', 'a', null, 'b') as e, instr('abc', 'c') as f, lpad('a', 3, 'x') as g, initcap('ab cd') as h, trim('  a ') as i, replace('aba', 'a', 'x') as j, regexp_replace('a1b2', '[0-9]', '') as k, regexp_extract('a12', '([0-9]+)', 1) as l, md5('a') as m, hex('a') as n
select g like 'a%' as a, g not like '%a' as b, g rlike '^[ab]' as c, upper(g) as d, length(g) as e, g || '!' as f from r
select size(cast(null as array<int>)) as a, sort_array(array(2, null, 1)) as b, sort_array(array(2, null, 1), false) as c, array_sort(array(2, null, 1)) as d, array_contains(array(1, null), 2) as e, element_at(array(1, 2), -1) as f, array(1, 2)[5] as g, array_join(array('a', null, 'b'), ',') as h, transform(array(1, 2), (e, i) -> e * i) as i, filter(array(1, 2, 3), e -> e > 1) as j, exists(array(1, null), e -> e > 1) as k, aggregate(array(1, 2), 0, (s, e) -> s + e) as l, sequence(1, 5, 2) as m, array_distinct(array(1, 1, null)) as n
select named_struct('a', 1, 'b', 'x').b as a, struct(k, a).a as b, map('x', 1)['x'] as c, struct(1, 2) = struct(1, 2) as d from r
select id, e, size(sequence(k, -1)) as s from o lateral view outer explode(sequence(-1, k - 3)) l as e
select id, sequence(3, k) as a, sequence(k, 3, 1 - 2 * int(k > 3)) as b, sequence(k, k, 0) as c, sequence(date'2024-03-02', date_sub(date'2024-03-02', k)) as d, sequence(timestamp'2024-03-02 10:00:00', timestamp'2024-02-29 11:00:00') as t from o
select id, exists (values (1, 'a'), (2, null)) as e from o where not exists (values (1)) or id > 2
