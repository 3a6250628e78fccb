select
    c.customer_id,
    c.event_id,
    c.status,
    c.last_name,
    c.first_name,
    c.tier,
    c.city,
    c.country,
    c.email,
    n.name as national_tax,
    n.rate as national_rate,
    l.name as local_tax,
    l.rate as local_rate,
    p.agency_id,
    p.credit_rating,
    p.net_worth,
    p.marketing_tag,
    c.effective_from,
    c.effective_to,
    c.is_current
from {{ ref('customer_versions') }} as c
left join {{ source('raw', 'tax_rates') }} as n on c.national_tax_id = n.tax_id
left join {{ source('raw', 'tax_rates') }} as l on c.local_tax_id = l.tax_id
left join {{ ref('dim_prospects') }} as p
    on upper(c.last_name) = p.last_name
    and upper(c.first_name) = p.first_name
    and upper(c.city) = p.city
