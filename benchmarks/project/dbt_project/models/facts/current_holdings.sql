select account_id, customer_id, symbol, company_id, closed_on, trade_price as bought_at, after_quantity as quantity
from {{ ref('fact_holdings') }}
qualify row_number() over (partition by account_id, symbol order by closed_at desc, trade_id desc) = 1
