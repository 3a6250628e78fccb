with months as (
    select d.month, b.broker_id, b.branch, sum(b.trades) as trades, sum(b.commission) as commission
    from {{ ref('broker_days') }} as b
    inner join {{ ref('dim_dates') }} as d on b.placed_on = d.day
    group by d.month, b.broker_id, b.branch
)

select
    month,
    broker_id,
    branch,
    trades,
    commission,
    rank() over (partition by month, branch order by commission desc nulls last) as place,
    commission / sum(commission) over (partition by month, branch) as share_of_branch
from months
