select symbol, day, close, high, low, volume
from {{ source('raw', 'daily_market') }}
where volume > 0
