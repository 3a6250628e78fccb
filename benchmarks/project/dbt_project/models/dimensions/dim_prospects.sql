select
    agency_id,
    last_name,
    first_name,
    city,
    income,
    net_worth,
    credit_rating,
    recorded_on,
    concat_ws(
        '+',
        case when net_worth > 1000000 or income > 200000 then 'high value' end,
        case when children > 3 or cards > 5 then 'expenses' end,
        case when credit_rating < 600 or income < 50000 or net_worth < 100000 then 'money alert' end,
        case when cars > 3 or cards > 7 then 'spender' end
    ) as marketing_tag
from {{ ref('stg_prospects') }}
