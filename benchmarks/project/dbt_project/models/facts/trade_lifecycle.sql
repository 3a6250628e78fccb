select
    trade_id,
    min(case when status_id in ('SBMT', 'PNDG') then changed_at end) as placed_at,
    max(case when status_id in ('CMPT', 'CNCL') then changed_at end) as closed_at,
    count(*) as changes
from {{ ref('stg_trade_history') }}
group by trade_id
