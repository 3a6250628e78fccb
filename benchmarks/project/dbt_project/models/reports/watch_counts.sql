select
    symbol,
    sector,
    count(*) as watches,
    count(removed_on) as removed,
    count(distinct country) as countries,
    min(placed_on) as first_placed_on
from {{ ref('fact_watches') }}
group by symbol, sector
having count(*) > count(removed_on)
