{{ config(materialized='fivm') }}

-- Planes that left an hour late three times or more in a row. Flights without a plane or without an hour are left out.
select tailnum, first_hour, last_hour, departures, total_delay
from (
    select tailnum, time_hour, sched_dep_time, carrier, flight, dep_delay
    from {{ source('raw', 'flights') }}
    where tailnum is not null and time_hour is not null and dep_delay is not null
) as departed match_recognize (
    partition by tailnum
    order by time_hour, sched_dep_time, carrier, flight, dep_delay
    measures
        first(late.time_hour) as first_hour,
        last(late.time_hour) as last_hour,
        count(late.*) as departures,
        sum(late.dep_delay) as total_delay
    pattern (late{3,})
    define late as late.dep_delay > 60
) as matched
