{{ config(materialized='fivm') }}

select fivm_covariance(
    f.arr_delay, f.distance, f.hour, w.temp, w.wind_speed, w.precip, w.visib, p.seats, p.year as built,
    fivm_categorical(f.carrier),
    fivm_categorical(f.origin),
    fivm_categorical(case when f.arr_delay > 15 then 'late' else 'on time' end as arrival)
) as m
from {{ source('raw', 'flights') }} f
join {{ source('raw', 'weather') }} w on f.origin = w.origin and f.time_hour = w.time_hour
join {{ source('raw', 'planes') }} p on f.tailnum = p.tailnum
join {{ source('raw', 'airlines') }} l on f.carrier = l.carrier
join {{ source('raw', 'airports') }} a on f.dest = a.faa
