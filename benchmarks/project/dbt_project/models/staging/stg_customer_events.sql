select
    event_id,
    customer_id,
    upper(action) as action,
    happened_at,
    last_name,
    first_name,
    case when tier between 1 and 3 then tier end as tier,
    born_on,
    city,
    country,
    lower(email) as email,
    national_tax_id,
    local_tax_id
from {{ source('raw', 'customer_events') }}
