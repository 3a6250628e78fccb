{{ config(materialized='fivm') }}

-- Joined by station and hour. A reading or a flight whose hour is not known (NULL) matches nothing, and a variable
-- wind has no direction: its octant is NULL, a group like any other.
select
    trunc(f.flight_date, 'MM') as flight_month,
    f.origin,
    cast(w.wind_dir / 45 as int) as wind_octant,
    case when w.visib < 3 then 'low' else 'good' end as visibility,
    count(*) as flights,
    count(f.dep_time) as departed,
    sum(f.dep_delay) as dep_delay,
    avg(f.dep_delay) as avg_dep_delay,
    avg(w.wind_speed) as avg_wind_speed,
    sum(w.precip) as precip
from {{ source('raw', 'flights') }} as f
inner join {{ source('raw', 'weather') }} as w on f.origin = w.origin and f.time_hour = w.time_hour
group by trunc(f.flight_date, 'MM'), f.origin, cast(w.wind_dir / 45 as int),
    case when w.visib < 3 then 'low' else 'good' end
