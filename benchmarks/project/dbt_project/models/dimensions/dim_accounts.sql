-- A version of an account lasts as long as it, its customer and their data stay as they are.
select
    a.account_id,
    a.event_id as account_event_id,
    c.event_id as customer_event_id,
    a.customer_id,
    a.broker_id,
    b.branch,
    a.name,
    a.tax_status,
    a.status,
    c.tier,
    c.country,
    greatest(a.effective_from, c.effective_from) as effective_from,
    least(a.effective_to, c.effective_to) as effective_to,
    a.is_current and c.is_current as is_current
from {{ ref('account_versions') }} as a
inner join {{ ref('customer_versions') }} as c
    on a.customer_id = c.customer_id
    and a.effective_from < c.effective_to
    and c.effective_from < a.effective_to
left join {{ ref('dim_brokers') }} as b on a.broker_id = b.broker_id
