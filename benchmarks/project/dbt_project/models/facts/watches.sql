select
    customer_id,
    symbol,
    min(case when action = 'placed' then happened_at end) as placed_at,
    max(case when action = 'removed' then happened_at end) as removed_at,
    count(*) as events
from {{ ref('stg_watch_events') }}
group by customer_id, symbol
