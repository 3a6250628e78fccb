select
    account_id,
    happened_at,
    cast(happened_at as date) as happened_on,
    amount,
    memo
from {{ source('raw', 'cash_transactions') }}
