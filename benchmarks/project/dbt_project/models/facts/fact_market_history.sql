select
    m.symbol,
    m.day,
    s.company_id,
    s.sector,
    m.close,
    m.high,
    m.low,
    m.volume,
    m.year_high,
    m.year_low,
    m.close / nullif(e.earnings_per_share, 0) as price_to_earnings,
    s.dividend / m.close * 100 as dividend_yield
from {{ ref('market_days') }} as m
inner join {{ ref('dim_securities') }} as s
    on m.symbol = s.symbol
    and m.day >= s.effective_from
    and m.day < s.effective_to
left join {{ ref('earnings_of_a_year') }} as e
    on s.company_id = e.company_id
    and m.day >= e.known_from
    and m.day < e.known_to
