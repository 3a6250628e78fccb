-- Flights by day and airport: a join, three aggregates, partitions by month of the day.
create table raw.flights (flight_date date, origin string, dep_delay decimal(6,1), cancelled boolean);
create table raw.airports (faa string primary key, name string);

select f.flight_date, a.name as airport, count(*) as flights, sum(f.dep_delay) as delay, avg(f.dep_delay) as avg_delay
from raw.flights f
join raw.airports a on f.origin = a.faa
where not f.cancelled
group by 1, 2
having count(*) > 10;
