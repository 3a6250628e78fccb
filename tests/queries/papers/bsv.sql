select x.broker_id, sum(x.volume * x.price * y.volume * y.price * 0.5) as variance
from bids x, bids y
where x.broker_id = y.broker_id
group by x.broker_id
