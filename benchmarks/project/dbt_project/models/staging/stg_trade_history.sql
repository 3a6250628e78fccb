select trade_id, status_id, changed_at
from {{ source('raw', 'trade_history') }}
where status_id is not null
