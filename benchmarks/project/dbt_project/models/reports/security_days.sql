select
    placed_on,
    symbol,
    sector,
    count(*) as trades,
    sum(case when is_sell then 1 else 0 end) as sells,
    sum(quantity) as shares,
    sum(quantity * trade_price) as turnover,
    sum(quantity * trade_price) / sum(case when trade_price is not null then quantity end) as mean_price
from {{ ref('fact_trades') }}
group by placed_on, symbol, sector
