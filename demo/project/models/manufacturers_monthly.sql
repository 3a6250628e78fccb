{{ config(materialized='fivm') }}

-- A flight without a tail number (NULL) matches no plane.
select
    trunc(f.flight_date, 'MM') as flight_month,
    p.manufacturer,
    count(*) as flights,
    sum(f.distance) as miles,
    sum(f.distance * p.seats) as seat_miles,
    avg(f.arr_delay) as avg_arr_delay
from {{ source('raw', 'flights') }} as f
inner join {{ source('raw', 'planes') }} as p on f.tailnum = p.tailnum
where f.dep_time is not null
group by trunc(f.flight_date, 'MM'), p.manufacturer
having count(*) >= 10
