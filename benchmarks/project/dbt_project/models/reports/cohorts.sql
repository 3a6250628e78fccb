-- Customers by the month of their first trade, and how many of them traded in the months after it.
with months as (
    select distinct customer_id, trunc(placed_on, 'MM') as month
    from {{ ref('fact_trades') }}
),

first_months as (
    select customer_id, min(month) as first_month
    from months
    group by customer_id
)

select f.first_month, m.month, count(*) as customers
from months as m
inner join first_months as f on m.customer_id = f.customer_id
group by f.first_month, m.month
