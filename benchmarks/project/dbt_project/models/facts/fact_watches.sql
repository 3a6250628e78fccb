select
    w.customer_id,
    c.tier,
    c.country,
    w.symbol,
    s.company_id,
    s.sector,
    cast(w.placed_at as date) as placed_on,
    cast(w.removed_at as date) as removed_on
from {{ ref('watches') }} as w
inner join {{ ref('current_customers') }} as c on w.customer_id = c.customer_id
inner join {{ ref('dim_securities') }} as s
    on w.symbol = s.symbol
    and w.placed_at >= s.effective_from
    and w.placed_at < s.effective_to
where w.placed_at is not null
