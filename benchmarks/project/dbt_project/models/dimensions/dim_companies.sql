select
    c.filing_id,
    c.company_id,
    c.name as company,
    c.status,
    i.name as industry,
    i.sector,
    c.rating,
    substring(c.rating, 1, 1) not in ('A') and c.rating not like 'BBB%' as is_low_grade,
    c.country,
    c.effective_from,
    c.effective_to,
    c.effective_to = timestamp'9999-12-31 00:00:00' as is_current
from {{ ref('company_versions') }} as c
inner join {{ source('raw', 'industries') }} as i on c.industry_id = i.industry_id
