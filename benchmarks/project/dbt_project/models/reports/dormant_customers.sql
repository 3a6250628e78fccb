select c.customer_id, c.last_name, c.first_name, c.tier, c.country
from {{ ref('current_customers') }} as c
where c.status = 'active'
    and c.customer_id in (select customer_id from {{ ref('current_accounts') }} where status = 'open')
    and not exists (
        select 1 from {{ ref('fact_trades') }} as t
        where t.customer_id = c.customer_id and t.placed_on >= date'2023-10-01'
    )
