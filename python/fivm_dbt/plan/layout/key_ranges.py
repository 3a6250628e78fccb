"""A state lies by ranges of a key that is counted up, as facts' keys are, and not by its hash.

Rows that come together have such keys near each other: a week of orders is in the last ranges, where it would be in
each of the buckets. So a change reads and writes few partitions. Whether an input's rows lie in the order of a column
is measured at the build: by how much of its values each file covers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.plan.layout.origins import Origins

ROWS_A_RANGE = 2**16
"""About as many rows a partition has that is written in a second."""

FEWEST, MOST = 8, 512
"""Ranges of a state when it is built; more come with its keys."""


@dataclass
class KeyRanges:
    """Of the views of one model, by the ``origins`` of their columns.

    ``wanted`` says which columns have to be looked at: by input.
    """

    measured: TableStatistics | None
    origins: Origins
    wanted: dict[str, set[str]] = field(default_factory=dict)
    _placed: dict[str, frozenset[str]] = field(default_factory=dict)
    """By view what the key is called by whose ranges it lies: in its state, and where it is shown."""

    def add(self, view: str, shown: Iterable[tuple[str, str | None]], key: str) -> None:
        """Note that a view lies by ranges of a key; ``shown`` are its columns, and the keys that they are."""
        self._placed[view] = frozenset({key, *(name for name, of in shown if of == key)})

    def width(self, node: Node, keys: Iterable[Item]) -> tuple[str, int] | None:
        """The first key in whose order the rows of ``node`` come, and how long its ranges are; None without one."""
        for key in keys:
            origin = self.origins.of(node, key.value) if key.type.is_integral else None
            if origin is None or not origin.is_same or not origin.type.is_integral:
                continue
            if self.is_ordered(origin.relation, origin.column):
                assert self.measured is not None
                known = self.measured.range_of(origin.relation, origin.column)
                assert known is not None
                return key.name, _width(known.high - known.low + 1, known.rows)
        return None

    def is_ordered(self, relation: str, column: str) -> bool:
        """Whether the rows of an input or a view lie in the order of a column; of inputs what is asked is looked at."""
        if self.origins.has(relation):
            return column in self._placed.get(relation, ())
        self.wanted.setdefault(relation, set()).add(column)
        return self.measured is not None and self.measured.range_of(relation, column) is not None


def _width(values: int, rows: int) -> int:
    """A power of two, so that a table that has grown a little has the same layout.

    >>> _width(1_000_000, 1_000_000), _width(1_000_000, 100_000_000), _width(2**60, 1_000_000)
    (131072, 2048, 144115188075855872)
    """
    ranges = min(MOST, max(FEWEST, rows // ROWS_A_RANGE))
    return 1 << max(0, (values // ranges).bit_length())
