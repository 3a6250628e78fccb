select
    agency_id,
    upper(last_name) as last_name,
    upper(first_name) as first_name,
    upper(city) as city,
    income,
    net_worth,
    credit_rating,
    children,
    cards,
    cars,
    recorded_on
from {{ source('raw', 'prospects') }}
