select sum(b1.price * b1.volume) as vwap
from bids b1
where 0.25 * (select coalesce(sum(b3.volume), 0) from bids b3)
        > (select coalesce(sum(b2.volume), 0) from bids b2 where b2.price > b1.price)
