select
    day,
    year,
    quarter,
    month,
    concat(year, '-Q', quarter) as quarter_name,
    not is_weekend and not is_holiday as is_trading_day,
    sum(case when is_weekend or is_holiday then 0 else 1 end) over (partition by month order by day) as trading_day_of_month
from {{ source('raw', 'calendar') }}
