select
    account_id,
    happened_on,
    amount,
    sum(amount) over (partition by account_id order by happened_on) as balance
from {{ ref('cash_by_day') }}
