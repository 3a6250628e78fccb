select
    d.placed_on as day,
    d.symbol,
    d.trades,
    d.shares,
    m.volume,
    d.shares / m.volume as share_of_volume,
    d.mean_price - m.close as above_close
from {{ ref('security_days') }} as d
left join {{ ref('stg_daily_market') }} as m on d.symbol = m.symbol and d.placed_on = m.day
