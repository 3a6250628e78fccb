select
    country,
    tier,
    count(*) as customers,
    sum(case when status = 'active' then 1 else 0 end) as active,
    count(agency_id) as prospects,
    avg(national_rate + local_rate) as mean_rate
from {{ ref('current_customers') }}
group by country, tier
