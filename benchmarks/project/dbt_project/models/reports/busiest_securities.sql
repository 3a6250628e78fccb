with months as (
    select trunc(placed_on, 'MM') as month, symbol, sector, sum(trades) as trades, sum(turnover) as turnover
    from {{ ref('security_days') }}
    group by trunc(placed_on, 'MM'), symbol, sector
)

select month, symbol, sector, trades, turnover, row_number() over (partition by month order by trades desc, symbol, sector) as place
from months
qualify row_number() over (partition by month order by trades desc, symbol, sector) <= 10
