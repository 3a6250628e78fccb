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
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.plan.layout.origins import Origins
from fivm_dbt.plan.layout.partitioning import is_period


@dataclass
class RowsADay:
    """Of the views of one model, by the ``origins`` of their columns.

    ``measurable`` says what has to be ``measured`` for it: by input, columns.
    """

    measured: TableStatistics | None
    origins: Origins
    measurable: dict[str, set[str]] = field(default_factory=dict)

    def expected(self, node: Node, keys: Sequence[Item]) -> float | None:
        """Rows of each day in the rows of ``node``, by the first of these keys that is a period; None if unknown."""
        day = next((key for key in keys if is_period(key.type, key.value)), None)
        origin = None if day is None else self.origins.of(node, day.value)
        if origin is None or not origin.type.is_temporal:
            return None
        inputs = self.origins.inputs(node)
        for name in inputs:
            self.measurable.setdefault(name, set())
        column = origin.column if origin.type == DATE else days_of(origin.column)
        self.measurable[origin.relation].add(column)
        if self.measured is None:
            return None
        days = self.measured.distinct_of(origin.relation, column)
        rows = [counted for name in inputs if (counted := self.measured.rows_of(name)) is not None]
        return max(rows) / max(1, days) if days is not None and len(rows) == len(inputs) else None
