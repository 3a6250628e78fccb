select t.trade_id, t.account_id, t.symbol, t.type_id, t.quantity, t.bid_price, l.placed_at
from {{ ref('stg_trades') }} as t
inner join {{ ref('trade_lifecycle') }} as l on t.trade_id = l.trade_id
where l.closed_at is null
    and exists (
        select 1 from {{ ref('current_accounts') }} as a where a.account_id = t.account_id and a.status = 'open'
    )
