"""Making up streams of changes: tables in memory, and batches that are drawn from what is in them."""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from benchmarks.queries.suite import Batch, RowChange
from fivm_dbt.refresh.engine import Row

Where = Callable[[Any], bool]


class Draft:
    """The tables as they are after all batches so far, and the batch that is being made.

    Rows are named tuples, so that ``row.l_quantity`` and ``row._replace(l_quantity=...)`` work. The same seed
    and the same rows give the same stream.
    """

    def __init__(
        self, columns: Mapping[str, Sequence[str]], rows: Mapping[str, Iterable[Row]], seed: int
    ) -> None:
        self.random = Random(seed)
        self._types: dict[str, Any] = {table: namedtuple(table, names) for table, names in columns.items()}
        self._bags = {t: Counter(self._types[t](*row) for row in rows.get(t, ())) for t in columns}
        self._came: dict[str, Counter[Any]] = {t: Counter() for t in columns}
        self._went: dict[str, list[Any]] = {t: [] for t in columns}
        self._done: list[Batch] = []

    def rows(self, table: str, where: Where | None = None) -> list[Any]:
        """The distinct rows of a table, oldest first."""
        return [row for row in self._bags[table] if where is None or where(row)]

    def copies(self, table: str, row: Any) -> int:
        """How often the row is in the table."""
        return self._bags[table][row]

    def some(self, table: str, count: int, where: Where | None = None) -> list[Any]:
        """At most ``count`` distinct rows, drawn at random."""
        rows = self.rows(table, where)
        return self.random.sample(rows, min(count, len(rows)))

    def insert(self, table: str, **values: object) -> Any:
        """Add a row with these values; the row."""
        return self.insert_row(table, self._types[table](**values))

    def insert_row(self, table: str, row: Any) -> Any:
        """Add a row, or another copy of one that is there."""
        self._bags[table][row] += 1
        self._came[table][row] += 1
        return row

    def delete(self, table: str, row: Any) -> None:
        """Remove one copy of a row."""
        self._bags[table][row] -= 1
        if not self._bags[table][row]:
            del self._bags[table][row]
        if self._came[table][row]:
            self._came[table][row] -= 1
        else:
            self._went[table].append(row)

    def update(self, table: str, row: Any, **values: object) -> Any:
        """Replace one copy of a row by one with other values; the new row."""
        self.delete(table, row)
        return self.insert_row(table, row._replace(**values))

    def finish(self, title: str) -> Batch:
        """The batch with everything since the last one."""
        changes = {}
        for table in self._types:
            came, went = tuple(self._came[table].elements()), tuple(self._went[table])
            if came or went:
                changes[table] = RowChange(insert=came, delete=went)
            self._came[table], self._went[table] = Counter(), []
        batch = Batch(title, changes)
        self._done.append(batch)
        return batch

    def undo(self) -> Batch:
        """The batch that takes back the last one that has not been taken back; nothing may be pending."""
        batch = self._done.pop().inverse()
        for table, change in batch.changes.items():
            self._bags[table].subtract(change.delete)
            self._bags[table].update(change.insert)
            self._bags[table] = +self._bags[table]
        return batch
