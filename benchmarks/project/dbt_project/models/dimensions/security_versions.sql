select
    filing_id,
    symbol,
    company_id,
    name,
    issue,
    exchange,
    shares,
    dividend,
    filed_at as effective_from,
    coalesce(
        lead(filed_at) over (partition by symbol order by filed_at, filing_id), timestamp'9999-12-31 00:00:00'
    ) as effective_to
from {{ ref('stg_security_filings') }}
