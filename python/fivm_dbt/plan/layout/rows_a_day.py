"""How many rows a state has of a day is estimated from the inputs that its rows come from.

These have so many rows, and a time of one of them so many days. Rows of the others find one of that input, as a foreign
key does: a result has about as many rows as the largest input, or fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.catalog.statistics import days_of
from fivm_dbt.catalog.types import DATE
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.layout.partitioning import is_period

Column = tuple[str, str]
"""An input, and one of its columns as it is measured: a date, or the days of a time."""


@dataclass
class RowsADay:
    """Of the views of one model, each after those that it scans.

    ``measurable`` says what has to be ``measured`` for it: by input, columns.
    """

    measured: TableStatistics | None
    measurable: dict[str, set[str]] = field(default_factory=dict)
    _inputs: dict[str, frozenset[str]] = field(default_factory=dict)
    _times: dict[str, dict[str, Column]] = field(default_factory=dict)
    """By view what its columns are computed of."""

    def add(self, name: str, node: Node, names: Sequence[str]) -> None:
        """Note where the rows of a view come from, which shows the fields of ``node`` by these ``names``."""
        self._inputs[name] = self._below(node)
        found = ((shown, self._origin(node, f.scalar)) for shown, f in zip(names, node.fields, strict=True))
        self._times[name] = {shown: origin for shown, origin in found if origin is not None}

    def expected(self, node: Node, keys: Sequence[Item]) -> float | None:
        """Rows of each day in the rows of ``node``, by the first of these keys that is a period; None if unknown."""
        day = next((key for key in keys if is_period(key.type, key.value)), None)
        origin = None if day is None else self._origin(node, day.value)
        if origin is None:
            return None
        inputs = self._below(node)
        for name in inputs:
            self.measurable.setdefault(name, set())
        relation, column = origin
        self.measurable[relation].add(column)
        if self.measured is None:
            return None
        days = self.measured.distinct_of(relation, column)
        rows = [counted for name in inputs if (counted := self.measured.rows_of(name)) is not None]
        return max(rows) / max(1, days) if days is not None and len(rows) == len(inputs) else None

    def _below(self, node: Node) -> frozenset[str]:
        """The inputs, also those of the views that are scanned."""
        read = {scan.relation for scan in scans(node)}
        return frozenset().union(*(self._inputs.get(name, frozenset({name})) for name in read))

    def _origin(self, node: Node, value: Scalar) -> Column | None:
        """The column of an input that a value over the columns of ``node`` is computed of, where it is a time."""
        if len(value.columns) != 1:
            return None
        (column,) = value.columns
        if not node.inputs:
            return next((self._of_scan(scan, column[1]) for scan in scans(node)), None)
        shown = node.shown_as(column)
        if shown is not None:
            return self._origin(node.inputs[0], shown)
        below = next((child for child in node.inputs if column in child.ids), None)
        return None if below is None else self._origin(below, value)

    def _of_scan(self, scan: Scan, column: str) -> Column | None:
        if scan.relation in self._times:
            return self._times[scan.relation].get(column)
        type_ = dict(scan.columns).get(column)
        if type_ is None or not type_.is_temporal:
            return None
        return scan.relation, column if type_ == DATE else days_of(column)
