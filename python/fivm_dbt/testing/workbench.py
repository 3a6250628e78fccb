"""A scenario's tables live here: set up and changed directly, not through the engine under test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fivm_dbt.catalog import Column, DatabaseView
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.engines.duckdb.meaning import check_meaning
from fivm_dbt.ir.clock import Clock
from fivm_dbt.ir.node import Node
from fivm_dbt.naming import quote
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.sql.typing import Describe
from fivm_dbt.testing.scenario import TableOptions


@dataclass(frozen=True)
class TableSpec:
    """A table of a scenario."""

    name: str
    columns: tuple[Column, ...]
    options: TableOptions = field(default_factory=TableOptions)
    partition_by: tuple[str, ...] = ()


class Workbench(Protocol):
    """The tables of one scenario on one engine. Every method that changes a table is one commit of it."""

    @property
    def engine(self) -> Engine: ...

    @property
    def describe(self) -> Describe | None:
        """Spark's answer to what types a query has, None where plans follow the rules written down here."""

    def columns_of(self, sql: str) -> tuple[Column, ...]:
        """The columns of a query as this engine sees them, for models that are recomputed."""

    def check_meaning(self, query: Node, sql: str) -> None:
        """Raise FIVM602 where this engine does not evaluate the query of a plan, or its text, as Spark does."""

    def make_room(self, relation: str) -> None:
        """See to it that the schema of a model to come exists."""

    def create(self, table: TableSpec, rows: Sequence[Row]) -> None:
        """A new table whose first version holds these rows."""

    def load(self, table: TableSpec, file: Path) -> None:
        """A new table whose first version holds the rows of a Parquet file with columns of the table's names.

        For more rows than fit into a statement: a million take seconds.
        """

    def change(self, table: TableSpec, insert: Sequence[Row], delete: Sequence[Row]) -> None:
        """Add rows, and remove one copy per row of ``delete``."""

    def replace(self, table: TableSpec, rows: Sequence[Row]) -> None:
        """CREATE OR REPLACE TABLE with these rows: its history goes on."""

    def recreate(self, table: TableSpec, rows: Sequence[Row]) -> None:
        """Drop the table and create it with these rows: its version numbers restart."""

    def show(self, view: DatabaseView) -> None:
        """Create a view of the database, or see to it that it is there."""

    def set_clock(self, clock: Clock | None) -> None:
        """What the engine's clock says from now on; None is the real time."""

    def close(self) -> None:
        """Remove everything that the scenario has created."""


class DuckDbWorkbench:
    """A scenario in its own in-memory DuckDB. ``tiny`` as in :class:`DuckDbEngine`."""

    def __init__(self, *, tiny: bool = False) -> None:
        self._engine = DuckDbEngine(tiny=tiny)

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def describe(self) -> None:
        return None  # DuckDB's types are not Spark's

    def columns_of(self, sql: str) -> tuple[Column, ...]:
        return self._engine.describe(sql)

    def check_meaning(self, query: Node, sql: str) -> None:
        check_meaning(query, sql)

    def make_room(self, relation: str) -> None:
        pass  # names are flat here

    def create(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self._engine.create_table(table.name, table.columns, rows, change_feed=table.options.change_feed)

    def load(self, table: TableSpec, file: Path) -> None:
        self._engine.load_table(table.name, table.columns, file, change_feed=table.options.change_feed)

    def change(self, table: TableSpec, insert: Sequence[Row], delete: Sequence[Row]) -> None:
        self._engine.change(table.name, insert=insert, delete=delete)

    def replace(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self._engine.replace(table.name, rows)

    def recreate(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self._engine.recreate(table.name, rows)

    def show(self, view: DatabaseView) -> None:
        names = f"({', '.join(map(quote, view.names))})" if view.names else ""
        query = f"SELECT * FROM (\n{view.sql}\n) AS q{names}"
        self._engine.run(f"CREATE OR REPLACE VIEW {view.name} AS {query}")

    def set_clock(self, clock: Clock | None) -> None:
        self._engine.fixed_clock = clock

    def close(self) -> None:
        self._engine.close()
