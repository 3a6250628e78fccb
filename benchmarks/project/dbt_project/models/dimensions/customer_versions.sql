-- An event tells only what is new, so each version takes the rest from the newest event before it that has it.
with filled as (
    select
        event_id,
        customer_id,
        action,
        happened_at,
        last_value(last_name, true) over history as last_name,
        last_value(first_name, true) over history as first_name,
        last_value(tier, true) over history as tier,
        last_value(born_on, true) over history as born_on,
        last_value(city, true) over history as city,
        last_value(country, true) over history as country,
        last_value(email, true) over history as email,
        last_value(national_tax_id, true) over history as national_tax_id,
        last_value(local_tax_id, true) over history as local_tax_id,
        lead(happened_at) over (partition by customer_id order by happened_at, event_id) as next_at
    from {{ ref('stg_customer_events') }}
    window history as (
        partition by customer_id
        order by happened_at, event_id
        rows between unbounded preceding and current row
    )
)

select
    customer_id,
    event_id,
    case when action = 'INACT' then 'inactive' else 'active' end as status,
    last_name,
    first_name,
    tier,
    born_on,
    city,
    country,
    email,
    national_tax_id,
    local_tax_id,
    happened_at as effective_from,
    coalesce(next_at, timestamp'9999-12-31 00:00:00') as effective_to,
    next_at is null as is_current
from filled
