-- Two sources under one another, in CTEs, types widened, grouped by a truncated time.
create table raw.web (at timestamp, amount decimal(10,2));
create table raw.shop (at timestamp, amount int);

with both as (
    select at, amount, 'web' as channel from raw.web
    union all
    select at, amount, 'shop' as channel from raw.shop
)
select date_trunc('hour', at) as hour, channel, sum(amount) as revenue
from both
group by date_trunc('hour', at), channel;
