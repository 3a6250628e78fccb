-- How long orders stay in each status, by the month in which they entered it.
with spans as (
    select
        status_id,
        changed_at,
        lead(changed_at) over (partition by trade_id order by changed_at, status_id) as left_at
    from {{ ref('stg_trade_history') }}
)

select
    date_trunc('month', s.changed_at) as month,
    u.name as status,
    count(*) as entered,
    count(s.left_at) as departed,
    avg(unix_timestamp(s.left_at) - unix_timestamp(s.changed_at)) as mean_seconds
from spans as s
inner join {{ source('raw', 'status_types') }} as u on s.status_id = u.status_id
group by date_trunc('month', s.changed_at), u.name
