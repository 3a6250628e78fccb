with events as (
    select customer_id, placed_on as day, 'trade' as kind, fee as paid
    from {{ ref('fact_trades') }}
    union all
    select customer_id, placed_on as day, 'watch' as kind, null as paid
    from {{ ref('fact_watches') }}
    union all
    select a.customer_id, c.happened_on as day, 'cash' as kind, null as paid
    from {{ ref('stg_cash_transactions') }} as c
    inner join {{ ref('current_accounts') }} as a on c.account_id = a.account_id
)

select
    customer_id,
    trunc(day, 'MM') as month,
    count(*) as events,
    sum(case when kind = 'trade' then 1 else 0 end) as trades,
    sum(case when kind = 'watch' then 1 else 0 end) as watches,
    sum(paid) as fees
from events
group by customer_id, trunc(day, 'MM')
