select
    trade_id,
    account_id,
    symbol,
    type_id,
    status_id,
    placed_at,
    is_cash,
    quantity,
    bid_price,
    trade_price,
    coalesce(fee, 0) as fee,
    commission,
    tax
from {{ source('raw', 'trades') }}
