select
    event_id,
    account_id,
    upper(action) as action,
    happened_at,
    customer_id,
    broker_id,
    trim(name) as name,
    tax_status
from {{ source('raw', 'account_events') }}
