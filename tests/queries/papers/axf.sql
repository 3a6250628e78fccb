select b.broker_id, sum(a.volume - b.volume) as volume
from bids b, asks a
where b.broker_id = a.broker_id
  and (a.price - b.price > 1000 or b.price - a.price > 1000)
group by b.broker_id
