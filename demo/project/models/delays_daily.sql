{{ config(materialized='fivm') }}

select
    f.flight_date,
    l.name as carrier,
    a.name as origin,
    count(*) as flights,
    count(f.dep_time) as departed,
    count(f.arr_delay) as arrived,
    sum(f.dep_delay) as dep_delay,
    sum(f.arr_delay) as arr_delay,
    sum(case when f.arr_delay > 15 then 1 else 0 end) as arrived_late,
    sum(f.distance) as miles,
    avg(f.dep_delay) as avg_dep_delay,
    avg(f.arr_delay) as avg_arr_delay
from {{ source('raw', 'flights') }} as f
inner join {{ source('raw', 'airports') }} as a on f.origin = a.faa
inner join {{ source('raw', 'airlines') }} as l on f.carrier = l.carrier
group by f.flight_date, l.name, a.name
