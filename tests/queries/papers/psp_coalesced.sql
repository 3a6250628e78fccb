select sum(a.price - b.price) as spread
from bids b, asks a
where b.volume > 0.0001 * (select coalesce(sum(b1.volume), 0) from bids b1)
  and a.volume > 0.0001 * (select coalesce(sum(a1.volume), 0) from asks a1)
