select
    c.customer_id,
    c.tier,
    c.country,
    coalesce(p.value, 0) as securities,
    coalesce(b.balance, 0) as cash
from {{ ref('current_customers') }} as c
left join (
    select customer_id, sum(value) as value
    from {{ ref('portfolio_values') }}
    group by customer_id
) as p on c.customer_id = p.customer_id
left join (
    select a.customer_id, sum(d.amount) as balance
    from {{ ref('cash_by_day') }} as d
    inner join {{ ref('current_accounts') }} as a on d.account_id = a.account_id
    group by a.customer_id
) as b on c.customer_id = b.customer_id
