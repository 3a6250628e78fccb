with prices as (
    select symbol, max(day) as day, max_by(close, day) as close
    from {{ ref('stg_daily_market') }}
    group by symbol
)

select
    h.account_id,
    h.customer_id,
    count(*) as positions,
    sum(h.quantity * p.close) as value,
    sum(h.quantity * h.bought_at) as cost,
    min(p.day) as oldest_price
from {{ ref('current_holdings') }} as h
inner join prices as p on h.symbol = p.symbol
where h.quantity > 0
group by h.account_id, h.customer_id
