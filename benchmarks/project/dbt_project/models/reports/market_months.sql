select
    symbol,
    trunc(day, 'MM') as month,
    min_by(close, day) as first_close,
    max_by(close, day) as last_close,
    max(high) as highest,
    min(low) as lowest,
    sum(volume) as volume,
    count(*) as days
from {{ ref('stg_daily_market') }}
group by symbol, trunc(day, 'MM')
