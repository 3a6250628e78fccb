{{ config(materialized='viewdf', meta={'fivm_start': '2013-12-01', 'fivm_part_length': 'day'}) }}

-- Days rolled up from their hours: a day is there once its last hour is, and a late correction computes that day again.
select
    origin,
    sum(flights) as flights,
    sum(departed) as departed,
    sum(dep_delay) as dep_delay
from {{ fivm.span(ref('hourly_departures')) }}
group by origin
