{{ config(materialized='fivm') }}

select
    flight_date,
    count(*) as services,
    sum(flights) as flights,
    sum(flights - departed) as not_departed,
    sum(arrived_late) as arrived_late,
    sum(miles) as miles,
    sum(dep_delay) / sum(departed) as avg_dep_delay,
    sum(arr_delay) / sum(arrived) as avg_arr_delay
from {{ ref('delays_daily') }}
group by flight_date
