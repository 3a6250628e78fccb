"""Inputs of which no copy is kept, because what a change needs of them is told by its time.

A copy that is placed by the columns which a join compares is looked up in few of its partitions, unless a change has
rows of all keys, as an hour of events has. Where the rows that can match also lie near the change in time, the input
itself is read around it: most tables of events lie in the order of their arrival.
"""

from __future__ import annotations

from itertools import count, product

from fivm_dbt.delta.distances import Distances, Way
from fivm_dbt.ir.moments import kind_of
from fivm_dbt.ir.nodes import Node
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.shift import DAY

MAX_WIDTH = 32 * DAY
"""Rows that may be farther from each other are looked up by keys: a month around each change would be read."""


def are_near(one: Node, other: Node, predicates: tuple[Scalar, ...], *, is_utc: bool) -> bool:
    """Whether matching rows have times that are near each other, by columns that are not simply equal.

    Equal columns place a copy by time as it is.
    """
    numbers = count()
    sides = [
        {f.id: (next(numbers), f.type) for f in node.fields if kind_of(f.type) is not None}
        for node in (one, other)
    ]
    if not all(sides):
        return False
    times = {**sides[0], **sides[1]}
    if any(p.equality is not None and set(p.equality) <= set(times) for p in predicates):
        return False
    way = Distances(is_utc).where(Way(times), predicates)
    for (here, _), (there, _) in product(sides[0].values(), sides[1].values()):
        ends = way.most(here).get(there), way.least(here).get(there)
        if ends[0] is not None and ends[1] is not None and ends[0][0].most + ends[1][0].most <= MAX_WIDTH:
            return True
    return False
