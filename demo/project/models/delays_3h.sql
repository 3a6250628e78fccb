{{ config(materialized='viewdf', meta={'fivm_start': '2013-12-01T02:00:00'}) }}

-- A window of three hours that slides by one: each is computed from three parts of one row per airport.
select
    origin,
    sum(flights) as flights,
    sum(dep_delay) as dep_delay,
    cast(sum(dep_delay) as double) / nullif(sum(departed), 0) as avg_dep_delay
from {{ fivm.part(ref('hourly_departures'), 'j-2', 'j') }}
group by origin
