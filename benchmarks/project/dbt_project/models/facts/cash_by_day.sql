select account_id, happened_on, count(*) as transactions, sum(amount) as amount
from {{ ref('stg_cash_transactions') }}
group by account_id, happened_on
