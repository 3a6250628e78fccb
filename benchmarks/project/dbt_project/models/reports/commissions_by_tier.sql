select
    date_trunc('month', placed_at) as month,
    coalesce(cast(tier as string), 'unknown') as tier,
    trade_type,
    count(*) as trades,
    count(distinct customer_id) as customers,
    sum(commission) as commission,
    sum(tax) as tax,
    avg(commission) as mean_commission
from {{ ref('fact_trades') }}
group by date_trunc('month', placed_at), coalesce(cast(tier as string), 'unknown'), trade_type
