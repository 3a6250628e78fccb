select
    day,
    sector,
    count(*) as securities,
    sum(volume) as volume,
    sum(close * volume) as turnover,
    avg(price_to_earnings) as mean_price_to_earnings,
    sum(case when high = year_high then 1 else 0 end) as new_highs,
    sum(case when low = year_low then 1 else 0 end) as new_lows
from {{ ref('fact_market_history') }}
group by day, sector
