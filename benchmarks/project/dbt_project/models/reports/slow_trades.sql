-- Orders that took more than twice as long as others of their type in their month.
with closed as (
    select
        trade_id,
        account_id,
        broker_id,
        trade_type,
        trunc(placed_on, 'MM') as month,
        unix_timestamp(closed_at) - unix_timestamp(placed_at) as seconds
    from {{ ref('fact_trades') }}
    where closed_at is not null
),

usual as (
    select month, trade_type, avg(seconds) as mean_seconds
    from closed
    group by month, trade_type
)

select c.trade_id, c.account_id, c.broker_id, c.trade_type, c.month, c.seconds, u.mean_seconds
from closed as c
inner join usual as u on c.month = u.month and c.trade_type = u.trade_type
where c.seconds > 2 * u.mean_seconds
