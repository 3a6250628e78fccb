select segment, sum(orders) as orders, sum(revenue) as revenue
from {{ ref('revenue_by_day') }}
group by segment
