select
    t.placed_on,
    t.broker_id,
    b.branch,
    count(*) as trades,
    count(t.commission) as paid_trades,
    sum(t.commission) as commission,
    sum(t.fee) as fees
from {{ ref('fact_trades') }} as t
left join {{ ref('dim_brokers') }} as b on t.broker_id = b.broker_id
group by t.placed_on, t.broker_id, b.branch
