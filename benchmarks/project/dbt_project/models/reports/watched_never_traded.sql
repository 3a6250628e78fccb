select w.customer_id, w.symbol, w.sector, w.placed_on
from {{ ref('fact_watches') }} as w
where w.removed_on is null
    and not exists (
        select 1 from {{ ref('fact_trades') }} as t where t.customer_id = w.customer_id and t.symbol = w.symbol
    )
