-- Each order with the account, the customer, the broker and the security as they were when it was placed.
select
    t.trade_id,
    t.account_id,
    a.customer_id,
    a.broker_id,
    a.tier,
    t.symbol,
    s.company_id,
    s.sector,
    l.placed_at,
    cast(l.placed_at as date) as placed_on,
    l.closed_at,
    y.name as trade_type,
    y.is_sell,
    u.name as status,
    t.is_cash,
    t.quantity,
    t.bid_price,
    t.trade_price,
    t.fee,
    t.commission,
    t.tax
from {{ ref('stg_trades') }} as t
inner join {{ ref('trade_lifecycle') }} as l on t.trade_id = l.trade_id
inner join {{ ref('dim_accounts') }} as a
    on t.account_id = a.account_id
    and l.placed_at >= a.effective_from
    and l.placed_at < a.effective_to
inner join {{ ref('dim_securities') }} as s
    on t.symbol = s.symbol
    and l.placed_at >= s.effective_from
    and l.placed_at < s.effective_to
inner join {{ source('raw', 'trade_types') }} as y on t.type_id = y.type_id
inner join {{ source('raw', 'status_types') }} as u on t.status_id = u.status_id
