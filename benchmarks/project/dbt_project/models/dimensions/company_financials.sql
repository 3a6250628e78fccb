select
    r.company_id,
    c.company,
    c.sector,
    r.quarter_start,
    r.reported_on,
    r.revenue,
    r.earnings,
    r.shares,
    r.earnings / nullif(r.revenue, 0) as margin
from {{ source('raw', 'financial_reports') }} as r
inner join {{ ref('dim_companies') }} as c
    on r.company_id = c.company_id
    and r.reported_on >= c.effective_from
    and r.reported_on < c.effective_to
