-- Earnings per share over the last four quarters, from the day of a report to that of the next one.
select
    company_id,
    quarter_start,
    reported_on as known_from,
    coalesce(lead(reported_on) over (partition by company_id order by quarter_start), date'9999-12-31') as known_to,
    sum(cast(earnings / shares as decimal(12,4))) over (
        partition by company_id order by quarter_start rows between 3 preceding and current row
    ) as earnings_per_share,
    count(*) over (
        partition by company_id order by quarter_start rows between 3 preceding and current row
    ) as quarters
from {{ source('raw', 'financial_reports') }}
