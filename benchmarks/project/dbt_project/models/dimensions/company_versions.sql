select
    filing_id,
    company_id,
    name,
    status,
    industry_id,
    rating,
    country,
    filed_at as effective_from,
    coalesce(
        lead(filed_at) over (partition by company_id order by filed_at, filing_id), timestamp'9999-12-31 00:00:00'
    ) as effective_to
from {{ ref('stg_company_filings') }}
