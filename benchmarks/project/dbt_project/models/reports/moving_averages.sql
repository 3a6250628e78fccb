select
    symbol,
    day,
    close,
    avg(close) over (partition by symbol order by day rows between 19 preceding and current row) as mean_of_20,
    avg(close) over (partition by symbol order by day rows between 49 preceding and current row) as mean_of_50
from {{ ref('stg_daily_market') }}
