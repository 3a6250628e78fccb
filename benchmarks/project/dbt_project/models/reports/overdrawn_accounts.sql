select
    b.account_id,
    a.name,
    date_trunc('month', b.happened_on) as month,
    min(b.balance) as lowest,
    count(*) as days
from {{ ref('cash_balances') }} as b
inner join {{ ref('current_accounts') }} as a on b.account_id = a.account_id
where b.balance < 0
group by b.account_id, a.name, date_trunc('month', b.happened_on)
having min(b.balance) < -10000
