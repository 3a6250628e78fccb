select
    account_id,
    count(*) as trades,
    sum(case when status = 'Canceled' then 1 else 0 end) as canceled,
    sum(case when status = 'Canceled' then 1 else 0 end) / count(*) as share_canceled,
    max(placed_on) as last_placed_on
from {{ ref('fact_trades') }}
group by account_id
having count(*) >= 10 and sum(case when status = 'Canceled' then 1 else 0 end) > 0.15 * count(*)
