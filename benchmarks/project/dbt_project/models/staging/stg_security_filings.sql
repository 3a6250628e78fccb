select
    filing_id,
    symbol,
    filed_at,
    company_id,
    trim(name) as name,
    issue,
    exchange,
    shares,
    dividend
from {{ source('raw', 'security_filings') }}
