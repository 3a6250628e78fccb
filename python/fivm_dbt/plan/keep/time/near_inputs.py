"""A change meets rows near its own time: inputs have no copy, and other copies are placed by the day.

A copy that is placed by the columns which a join compares is looked up in few of its partitions, unless a change has
rows of all keys, as an hour of events has. Where the rows that can match also lie near the change in time, the input
itself is read around it: most tables of events lie in the order of their arrival.
"""

from __future__ import annotations

from itertools import count, product

from fivm_dbt.catalog.types import DATE
from fivm_dbt.delta.distances import Distances
from fivm_dbt.delta.ways import Way
from fivm_dbt.ir.moments import kind_of
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.shift import DAY

MAX_WIDTH = 32 * DAY
"""Rows that may be farther from each other are looked up by keys: a month around each change would be read."""


def near_time(one: Node, other: Node, predicates: tuple[Scalar, ...], *, is_utc: bool) -> Item | None:
    """The day of the time of ``one`` that is near a time of ``other`` where rows match.

    None where there is none, or times are simply equal: these place a copy by time as it is.
    """
    numbers = count()
    sides = [
        {f.id: (next(numbers), f.type) for f in node.fields if kind_of(f.type) is not None}
        for node in (one, other)
    ]
    times = {**sides[0], **sides[1]}
    if not all(sides) or any(p.equality is not None and set(p.equality) <= set(times) for p in predicates):
        return None
    way = Distances(is_utc).where(Way(times), predicates)
    for (column, (here, type_)), (there, _) in product(sides[0].items(), sides[1].values()):
        above, below = way.most(here).get(there), way.least(here).get(there)
        if above is not None and below is not None and above[0].most + below[0].most <= MAX_WIDTH:
            time = Scalar.column(*column)
            return Item(f"{column[1]}_day", time if type_ == DATE else time.cast("date"), DATE)
    return None
