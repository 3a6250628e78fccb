select
    d.day,
    d.quarter_name,
    d.is_trading_day,
    count(distinct t.customer_id) as customers,
    count(distinct t.account_id) as accounts,
    count(t.trade_id) as trades
from {{ ref('dim_dates') }} as d
left join {{ ref('fact_trades') }} as t on d.day = t.placed_on
where d.year in (2022, 2023, 2024)
group by d.day, d.quarter_name, d.is_trading_day
