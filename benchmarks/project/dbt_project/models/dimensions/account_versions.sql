with filled as (
    select
        event_id,
        account_id,
        action,
        happened_at,
        last_value(customer_id, true) over history as customer_id,
        last_value(broker_id, true) over history as broker_id,
        last_value(name, true) over history as name,
        last_value(tax_status, true) over history as tax_status,
        lead(happened_at) over (partition by account_id order by happened_at, event_id) as next_at
    from {{ ref('stg_account_events') }}
    window history as (
        partition by account_id
        order by happened_at, event_id
        rows between unbounded preceding and current row
    )
)

select
    account_id,
    event_id,
    customer_id,
    broker_id,
    name,
    tax_status,
    case when action = 'CLOSE' then 'closed' else 'open' end as status,
    happened_at as effective_from,
    coalesce(next_at, timestamp'9999-12-31 00:00:00') as effective_to,
    next_at is null as is_current
from filled
