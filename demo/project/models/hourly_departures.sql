{{ config(materialized='viewdf', meta={'fivm_start': '2013-12-01'}) }}

-- Departures by hour and airport, each hour a part: a correction computes its hour again, and no other one.
select
    origin,
    count(*) as flights,
    count(dep_time) as departed,
    sum(dep_delay) as dep_delay
from {{ fivm.part(source('raw', 'flights')) }}
group by origin
