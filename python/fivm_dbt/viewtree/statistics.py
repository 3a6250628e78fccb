"""Sizes of relations give the sizes of joins and views."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fivm_dbt.viewtree.hypergraph import Hypergraph

ROWS, DISTINCT = 1_000_000, 1_000
"""Rows of a relation and values of a column of which nothing is known. A column that joins is taken for a key of the
smallest relation that has it: most joins are from a foreign key to a key, and have no more rows than the one side."""


PERIODS = 0.1
"""Share of its periods that a change is taken to lie in. Of hash buckets, few as they are, it has keys in each."""


APPENDED_ROWS = 1_000_000
"""Rows of what readers have to add up, to which deltas are appended at most: of a larger result all is written."""


@dataclass(frozen=True)
class Upkeep:
    """What it takes to keep a view up to date, in rows that Spark reads in the same time on two cores.

    ``view`` is what it takes in a refresh that changes the view, and ``row`` for each row of the partitions that are
    touched, with what is read to write it. Measured on TPC-H at SF 1 (``python -m benchmarks.compare``).
    """

    view: int
    row: int


WRITTEN, APPENDED = Upkeep(2_000_000, 6), Upkeep(400_000, 0)
"""A view whose partitions are written, and one whose delta goes into one file with those of all others."""


@dataclass(frozen=True)
class Statistics:
    """Rows per relation of the query, and distinct values per relation and variable; both as far as known.

    ``periods`` are the variables that are dates: a view with one among its keys is partitioned by it. ``upkeep`` is
    what it costs to keep one. ``changed`` is in what share of the last refreshes each relation changed, where that is
    known.
    """

    rows: dict[str, int] = field(default_factory=dict)
    distinct: dict[tuple[str, str], int] = field(default_factory=dict)
    periods: frozenset[str] = frozenset()
    upkeep: Upkeep = WRITTEN
    changed: Mapping[str, float] = field(default_factory=dict)

    def rows_of(self, name: str) -> int:
        return max(1, self.rows.get(name, ROWS))

    def weight(self, names: Iterable[str]) -> float:
        """How often relations change, in no unit: as they have, or by the fourth root of their rows.

        A fact of a hundred million rows is taken to change ten times as often as a dimension of ten thousand.
        """
        if self.changed:
            return sum(self.changed.get(name, 0.0) for name in sorted(names))
        return sum(math.pow(self.rows_of(name), 0.25) for name in sorted(names))

    def touched(self, keys: Iterable[str]) -> float:
        """Share of a view that changes of these variables lie in: some periods, or else every hash bucket."""
        return PERIODS if self.periods & set(keys) else 1.0

    def distinct_of(self, graph: Hypergraph, variable: str) -> int:
        """Values that a variable can have in a join: those of the relation that has the fewest."""
        return min(self._distinct(graph, name, variable) for name in graph.edges_of[variable])

    def _distinct(self, graph: Hypergraph, name: str, variable: str) -> int:
        joined = graph.edges_of[variable]
        unknown = min(self.rows_of(other) for other in joined) if len(joined) > 1 else DISTINCT
        return max(1, min(self.rows_of(name), self.distinct.get((name, variable), unknown)))

    def rows_of_join(self, graph: Hypergraph, names: Iterable[str]) -> float:
        """Rows of a natural join with independent columns: the product, less a factor per further occurrence."""
        members = set(names)
        product = math.prod(float(self.rows_of(name)) for name in members)
        for variable in graph.schema(members):
            values = sorted(
                (self._distinct(graph, n, variable) for n in graph.edges_of[variable] & members), reverse=True
            )
            product /= math.prod(values[:-1])
        return max(1.0, product)

    def groups(self, graph: Hypergraph, names: Iterable[str], keys: Iterable[str]) -> float:
        """Rows of a view: there are no more groups than values of the keys together, and no more than joined rows.

        Keys that one relation has have no more values together than it has rows that join.
        """
        members = set(names)
        joining = {name: self._rows_that_join(graph, name, members) for name in members}
        values = {
            key: min(
                min(float(self._distinct(graph, n, key)), joining.get(n, math.inf))
                for n in graph.edges_of[key] & members or graph.edges_of[key]
            )
            for key in keys
        }
        bounds = [math.prod(values.values()), self.rows_of_join(graph, members)]
        for name in members:
            others = (v for key, v in values.items() if name not in graph.edges_of[key])
            bounds.append(joining[name] * math.prod(others))
        return min(bounds)

    def _rows_that_join(self, graph: Hypergraph, name: str, members: set[str]) -> float:
        """Rows of a relation that find others: where these have fewer values of a variable, that share of its rows.

        Of a hundred airports three are where flights of three airports begin.
        """
        rows = float(self.rows_of(name))
        for variable in graph.schema({name}):
            own = self._distinct(graph, name, variable)
            others = graph.edges_of[variable] & members - {name}
            rows *= min([1.0, *(self._distinct(graph, n, variable) / own for n in others)])
        return max(1.0, rows)
