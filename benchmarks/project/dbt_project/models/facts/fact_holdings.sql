select
    h.trade_id,
    h.opening_trade_id,
    t.account_id,
    t.customer_id,
    t.symbol,
    t.company_id,
    t.closed_at,
    cast(t.closed_at as date) as closed_on,
    t.trade_price,
    h.before_quantity,
    h.after_quantity
from {{ source('raw', 'holding_changes') }} as h
inner join {{ ref('fact_trades') }} as t on h.trade_id = t.trade_id
where t.closed_at is not null
