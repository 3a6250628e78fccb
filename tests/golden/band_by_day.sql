-- A band join by the day: reads around the times of the changes, and a map of parts.
create table raw.pings (host string, ts timestamp, ms int)
  tblproperties ('fivm.event_time' = 'ts', 'fivm.part' = 'minute', 'fivm.lateness' = '2 hours');
create table raw.alerts (host string, ts timestamp, level int);
create table raw.hosts (host string, region string);

select date_trunc('day', a.ts) as day, h.region, count(*) as n, sum(p.ms) as ms
from raw.alerts a
join raw.hosts h on h.host = a.host
left join raw.pings p on p.host = a.host and p.ts between a.ts - interval '5' minutes and a.ts
where a.ts >= '2024-01-01'
group by 1, 2
