select x.broker_id, sum(x.volume * x.price - y.volume * y.price) as spread
from bids x, bids y
where x.broker_id = y.broker_id and x.t > y.t
group by x.broker_id
