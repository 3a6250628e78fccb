select
    s.symbol,
    s.filing_id as security_filing_id,
    c.filing_id as company_filing_id,
    s.company_id,
    s.name as security,
    s.issue,
    s.exchange,
    s.shares,
    s.dividend,
    c.company,
    c.sector,
    c.is_low_grade,
    greatest(s.effective_from, c.effective_from) as effective_from,
    least(s.effective_to, c.effective_to) as effective_to
from {{ ref('security_versions') }} as s
inner join {{ ref('dim_companies') }} as c
    on s.company_id = c.company_id
    and s.effective_from < c.effective_to
    and c.effective_from < s.effective_to
