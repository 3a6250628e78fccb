"""A suite: tables, queries over them, and the batches of changes through which the queries are followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.workbench import TableSpec

QUERIES = Path(__file__).resolve().parents[2] / "tests" / "queries"
"""Where the texts of all queries are."""


@dataclass(frozen=True)
class Query:
    """A query by its name, which is also that of its model."""

    name: str
    sql: str

    @staticmethod
    def read(folder: str, name: str) -> Query:
        """The query of ``tests/queries/<folder>/<name>.sql``."""
        return Query(name, (QUERIES / folder / f"{name}.sql").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class RowChange:
    """Rows that come and go in one commit of a table; a deleted row takes one of its equal copies along."""

    insert: tuple[Row, ...] = ()
    delete: tuple[Row, ...] = ()

    def inverse(self) -> RowChange:
        return RowChange(insert=self.delete, delete=self.insert)


@dataclass(frozen=True)
class Batch:
    """What happens to the tables between two refreshes, one commit per table."""

    title: str
    changes: Mapping[str, RowChange]

    def inverse(self) -> Batch:
        """The batch that leads back to where this one came from."""
        return Batch(f"undo: {self.title}", {t: c.inverse() for t, c in self.changes.items()})

    def summary(self) -> str:
        """``orders +3 -1, lineitem +9``, for people."""
        parts = []
        for table, change in self.changes.items():
            came = f" +{len(change.insert):,}" if change.insert else ""
            went = f" -{len(change.delete):,}" if change.delete else ""
            parts.append(f"{table}{came}{went}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Suite:
    """Tables with their first rows (or a Parquet file of them), queries, and a stream of batches."""

    name: str
    tables: tuple[TableSpec, ...]
    contents: Mapping[str, tuple[Row, ...] | Path]
    queries: tuple[Query, ...]
    batches: tuple[Batch, ...]
