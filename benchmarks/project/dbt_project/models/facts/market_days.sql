select
    symbol,
    day,
    close,
    high,
    low,
    volume,
    lag(close) over (partition by symbol order by day) as previous_close,
    max(high) over year as year_high,
    min(low) over year as year_low
from {{ ref('stg_daily_market') }}
window year as (partition by symbol order by day range between interval 364 days preceding and current row)
