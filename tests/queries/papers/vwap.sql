select sum(b1.price * b1.volume) as vwap
from bids b1
where 0.25 * (select sum(b3.volume) from bids b3)
        > (select sum(b2.volume) from bids b2 where b2.price > b1.price)
