select
    customer_id,
    symbol,
    happened_at,
    case action when 'ACTV' then 'placed' when 'CNCL' then 'removed' end as action
from {{ source('raw', 'watch_events') }}
