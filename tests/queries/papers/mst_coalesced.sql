select b.broker_id, sum(a.price * a.volume - b.price * b.volume) as missed
from bids b, asks a
where 0.25 * (select coalesce(sum(a1.volume), 0) from asks a1)
        > (select coalesce(sum(a2.volume), 0) from asks a2 where a2.price > a.price)
  and 0.25 * (select coalesce(sum(b1.volume), 0) from bids b1)
        > (select coalesce(sum(b2.volume), 0) from bids b2 where b2.price > b.price)
group by b.broker_id
