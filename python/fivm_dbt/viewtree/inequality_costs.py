"""Each way to keep an aggregate correlated by an inequality costs rows per refresh.

The paper's rates (Multilevel IVM, section 3.3, example 3.4) are of single updates and evaluations, in memory:

    cost_full = rate_Q [p(∃D) + (1 − p(∃D)) |dom_R(AB)|] + rate_R [|dom_Q(D)| |dom_R(A)| + 1]
    cost_part = rate_Q |dom_R(AB)| + rate_R

Here a refresh applies many changes at once, a table is read by its partitions, and a value that changes changes what
stands above it; a row that is written costs as much as :data:`WRITING` that are read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fivm_dbt.ir.buckets import BITS
from fivm_dbt.viewtree.choice import WRITING

Way = Literal["reevaluate", "parameterised", "ranges"]
"""How it is kept: as sums by key alone, also as one value per outer value in use, or that over sums per range."""

CHANGED = 0.01
"""Share of a relation that is taken to change from one refresh to the next, where it changes at all."""

_ROWS_PER_BUCKET, _MOST_BUCKETS = 500_000, 512
"""A state has a hash bucket per 32 MB of input, which are about so many rows, and not more than so many."""


@dataclass(frozen=True)
class Sizes:
    """What is known, or taken for granted, of ``γ_c(D ⋈θ R)`` and of the outer relation L, whose values D has.

    ``keys`` are the different values by which R is added up, in so many ``groups`` of equal values of the equalities
    beside the inequality. ``outer_kept`` are the rows of L where it is kept to be read as a whole: sums if they do.
    ``domain_kept`` are those of a domain that is kept beside it. The rates say how often R and L change, in refreshes;
    ``levels`` are those of ranges, None where these do not apply.
    """

    rows: float
    keys: float
    groups: float
    outer_rows: float
    outer_kept: float
    outer_values: float
    domain_kept: float
    rate: float
    outer_rate: float
    levels: int | None
    buckets: int

    @property
    def changed(self) -> float:
        return max(1.0, CHANGED * self.rows)

    @property
    def new_values(self) -> float:
        """Outer values per refresh that were not in use: a changed outer row has an old one with ``1 − |D| / |L|``."""
        return max(1.0, CHANGED * self.outer_rows) * min(1.0, self.outer_values / self.outer_rows)

    def touched(self, rows: float, changed: float) -> float:
        """The rows in the partitions of a table of ``rows`` in which so many keys lie."""
        return rows * min(1.0, changed / self.buckets)


def buckets_of(rows: float) -> int:
    """The hash buckets of states over inputs of so many rows.

    >>> buckets_of(1_000), buckets_of(3_000_000)
    (1, 8)
    """
    wanted = max(1.0, rows / _ROWS_PER_BUCKET)
    return int(min(_MOST_BUCKETS, 2 ** math.ceil(math.log2(wanted))))


def costs(sizes: Sizes) -> dict[Way, float]:
    """Rows that a refresh reads, and those that it writes times :data:`WRITING`, for each way that applies.

    With S the sums by key, D the outer values, G their sums, L the outer rows and H the sums per range:

        reevaluate     S + D + L                                                  when R or L changes
        parameterised  S if there are new values                                  when L changes
                       D + what changes of G, read and written, and of L          when R changes
        ranges         as parameterised, with what is looked up of H in place of S

    and the upkeep of S, or of H. (New values look S up by the equalities, where there are any.)
    """
    s = sizes
    either = max(s.rate, s.outer_rate)
    moved = s.outer_values * min(1.0, s.changed / s.groups)
    values = s.touched(s.outer_values, moved)
    kept = s.rate * (s.outer_values + (3 + WRITING) * values + 2 * s.touched(s.outer_rows, moved))
    started = s.touched(s.keys, s.new_values) if s.groups > 1 else s.keys * min(1.0, s.new_values)
    upkeep = s.rate * (1 + WRITING) * s.touched(s.keys, s.changed)
    found: dict[Way, float] = {
        "reevaluate": either * (s.keys + s.domain_kept + s.outer_kept) + upkeep,
        "parameterised": s.outer_rate * started + kept + upkeep,
    }
    if s.levels is not None:
        ranges = _rows_of_ranges(s.keys, s.groups, s.levels)
        looked_up = s.outer_rate * s.touched(ranges, s.new_values * s.levels)
        found["ranges"] = looked_up + kept + s.rate * (1 + WRITING) * s.touched(ranges, s.changed * s.levels)
    return found


def _rows_of_ranges(keys: float, groups: float, levels: int) -> float:
    """Rows of H where the values lie side by side: on each level a ``2 ** BITS``-th of those on the level below."""
    return sum(max(groups, keys / float(2 ** (BITS * level))) for level in range(levels))
