-- The paper gives no text, only this: one predicate over two uncorrelated aggregates of servers. Here: the racks with
-- servers whose load is more than a quarter above the mean.
select s.rack_id, count(*) as servers, sum(s.load) as load
from servers s
where s.load * (select count(*) from servers c) > 1.25 * (select coalesce(sum(t.load), 0) from servers t)
group by s.rack_id
