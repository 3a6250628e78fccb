"""Random rows in the shape of a dataset, and batches that change them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from benchmarks.learning.shapes import CATEGORICAL, Joined, Shape
from fivm_dbt.refresh.engine import Row

_GOES = 0.2
"""The share of a batch of facts that goes."""
_VALUES, _CATEGORIES = 100, 8


class Data:
    """The rows of all relations, and how they change."""

    def __init__(self, shape: Shape, kind: str, scale: float, seed: int) -> None:
        self._shape, self._kind, self._rng = shape, kind, random.Random(seed)
        self.rows = {table.name: [*self._filled(table, scale)] for table in shape.tables}

    def _filled(self, table: Joined, scale: float) -> Iterator[Row]:
        domains = [range(self._shape.domains[k]) for k in table.keys]
        if table.rows is not None:
            for _ in range(round(table.rows * scale)):
                yield self._row(table, [self._rng.choice(d) for d in domains])
        elif table.keys == ("locn", "zip"):
            for locn in domains[0]:
                yield self._row(table, [locn, locn % len(domains[1])])
        else:
            keys: list[list[int]] = [[]]
            for domain in domains:
                keys = [[*key, value] for key in keys for value in domain]
            for key in keys:
                yield self._row(table, key)

    def _row(self, table: Joined, key: Sequence[int]) -> Row:
        few = table.own if self._kind == CATEGORICAL else table.categorical
        return (*key, *(self._rng.randrange(_CATEGORIES if n < few else _VALUES) for n in range(table.own)))

    def batch(self, table: Joined, size: int) -> tuple[list[Row], list[Row]]:
        """Rows that come, and rows that go: ``size`` of both together, or a tenth of a small dimension."""
        rows = self.rows[table.name]
        if table.rows is not None:
            gone = [self._taken(rows) for _ in range(min(len(rows), round(size * _GOES)))]
            domains = [range(self._shape.domains[k]) for k in table.keys]
            come = [self._row(table, [self._rng.choice(d) for d in domains]) for _ in range(size - len(gone))]
        else:
            gone = [self._taken(rows) for _ in range(max(1, min(size // 2, len(rows) // 10)))]
            come = [self._row(table, [int(str(v)) for v in row[: len(table.keys)]]) for row in gone]
        rows += come
        return come, gone

    def _taken(self, rows: list[Row]) -> Row:
        place = self._rng.randrange(len(rows))
        rows[place], rows[-1] = rows[-1], rows[place]
        return rows.pop()
