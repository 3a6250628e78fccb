select sum(a.price - b.price) as spread
from bids b, asks a
where b.volume > 0.0001 * (select sum(b1.volume) from bids b1)
  and a.volume > 0.0001 * (select sum(a1.volume) from asks a1)
