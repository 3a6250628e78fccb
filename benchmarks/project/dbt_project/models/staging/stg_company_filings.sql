select
    filing_id,
    company_id,
    filed_at,
    trim(name) as name,
    status,
    industry_id,
    coalesce(rating, 'none') as rating,
    country
from {{ source('raw', 'company_filings') }}
