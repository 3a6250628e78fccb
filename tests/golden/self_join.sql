-- One relation twice: one change, two terms.
create table raw.edges (source int, target int, weight bigint);

select a.source, b.target, count(*) as paths, sum(a.weight + b.weight) as weight
from raw.edges a
join raw.edges b on a.target = b.source
group by a.source, b.target;
