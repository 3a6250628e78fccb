"""Scenarios run on a local Spark with Delta: one session for all, a fresh schema for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fivm_dbt.catalog import Column, DatabaseView
from fivm_dbt.engines.spark.delta_lake.names import TINY as OF_LOG
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.engines.spark.session import local_session
from fivm_dbt.ir.clock import Clock
from fivm_dbt.ir.node import Node
from fivm_dbt.naming import quote, relation_name, split_name
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.spark.formats import CHANGE_FEED, FORMAT
from fivm_dbt.sql.typing import Describe
from fivm_dbt.testing.workbench import TableSpec, Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = "fivm_replay"

TINY = {
    "spark.sql.shuffle.partitions": "1",
    # One partition everywhere needs no exchange, and a few rows no code of their own.
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Checks of Spark's own optimizer after each of its rules.
    "spark.sql.lightweightPlanChangeValidation": "false",
    **OF_LOG,
}
"""Settings under which statements over a handful of rows take the least time."""


def spark_workbenches(directory: Path, settings: Mapping[str, str] = TINY) -> Callable[[], Workbench]:
    """Opens workbenches that share one local Spark session, whose tables are files in ``directory``."""
    session = local_session(directory)
    numbers = itertools.count(1)
    return lambda: SparkWorkbench(session, f"{_SCHEMA}_{next(numbers)}", settings=settings)


class SparkWorkbench:
    """A scenario in a schema of its own; relations with a schema in their name are in that one, made for them.

    Several may be open on one session, each in a thread.
    """

    def __init__(
        self,
        session: SparkSession,
        schema: str,
        settings: Mapping[str, str] = TINY,
    ) -> None:
        """``settings`` are those of Spark and of the format."""
        # A session of its own, for its settings, its staged rows and its current schema.
        self._session = session.newSession()
        self._schema = schema
        self._made: list[str] = []
        for key, value in settings.items():
            self._session.conf.set(key, value)
        self._sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self._sql(f"CREATE SCHEMA {schema}")
        self._sql(f"USE {schema}")
        self._engine = SparkEngine.of_session(self._session)

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def describe(self) -> Describe:
        return self._engine.describe

    def columns_of(self, sql: str) -> tuple[Column, ...]:
        return self._engine.describe(sql)

    def check_meaning(self, query: Node, sql: str) -> None:
        """Spark has the last word."""

    def make_room(self, relation: str) -> None:
        schema = relation_name(*split_name(relation)[:-1])
        if schema and not self._session.catalog.databaseExists(schema):
            self._sql(f"CREATE SCHEMA {schema}")
            self._made.append(schema)

    def create(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self.make_room(table.name)
        self._fill("CREATE TABLE", table, values_query(table, rows))

    def load(self, table: TableSpec, file: Path) -> None:
        self.make_room(table.name)
        self._fill("CREATE TABLE", table, rows_of_file(table, file))

    def change(self, table: TableSpec, insert: Sequence[Row], delete: Sequence[Row]) -> None:
        came = values_query(table, insert)
        if not delete:
            self._sql(f"INSERT INTO {table.name} {came}")
            return
        # EXCEPT ALL takes one copy per row; reading and writing the table in one statement makes one commit. Without a
        # condition it would be one by which the columns may be others too.
        kept = f"SELECT * FROM {table.name} EXCEPT ALL {values_query(table, delete)}"
        first = quote(table.columns[0].name)
        every = f"{first} IS NULL OR {first} IS NOT NULL"
        rows = f"SELECT * FROM (({kept}) UNION ALL {came})"
        self._sql(f"INSERT INTO {table.name} REPLACE WHERE {every} {rows}")

    def replace(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self._fill("CREATE OR REPLACE TABLE", table, values_query(table, rows))

    def recreate(self, table: TableSpec, rows: Sequence[Row]) -> None:
        self._sql(f"DROP TABLE {table.name}")
        self._fill("CREATE TABLE", table, values_query(table, rows))

    def show(self, view: DatabaseView) -> None:
        names = f" ({', '.join(map(quote, view.names))})" if view.names else ""
        self._sql(f"CREATE OR REPLACE VIEW {view.name}{names} AS\n{view.sql}")

    def set_clock(self, clock: Clock | None) -> None:
        self._engine.fixed_clock = clock

    def close(self) -> None:
        self._sql("USE default")
        for schema in (*self._made, self._schema):
            self._sql(f"DROP SCHEMA {schema} CASCADE")

    def _fill(self, create: str, table: TableSpec, rows: str) -> None:
        """Create the table with the rows of a query, in one commit where Delta can."""
        columns = ", ".join(quote(c) for c in table.partition_by)
        partitioned = f" PARTITIONED BY ({columns})" if columns else ""
        mapping = FORMAT.properties(named=(c.name for c in table.columns))
        feed = {CHANGE_FEED[0]: str(table.options.change_feed).lower()}
        properties = {**feed, **mapping}
        written = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        storage = f"USING {FORMAT.name.upper()}{partitioned} TBLPROPERTIES ({written})"
        if not mapping:
            self._sql(f"{create} {table.name} {storage} AS {rows}")
            return
        # Delta does not create a table with column mapping and a change feed from a query.
        defined = ", ".join(f"{quote(c.name)} {c.type}" for c in table.columns)
        self._sql(f"{create} {table.name} ({defined}) {storage}")
        self._sql(f"INSERT INTO {table.name} {rows}")

    def _sql(self, sql: str) -> None:
        self._session.sql(sql)


def rows_of_file(table: TableSpec, file: Path) -> str:
    """A query for the rows of a Parquet file, with the table's column types."""
    cast = ", ".join(f"CAST({quote(c.name)} AS {c.type}) AS {quote(c.name)}" for c in table.columns)
    return f"SELECT {cast} FROM parquet.{quote(str(file.resolve()))}"


def values_query(table: TableSpec, rows: Sequence[Row]) -> str:
    """A query for the rows, with the table's column names and types. Every value travels as text.

    >>> from fivm_dbt.catalog import Column
    >>> values_query(TableSpec("r", (Column.of("a", "int"),)), [(1,), (None,)])
    "SELECT CAST(c0 AS int) AS a FROM VALUES ('1'), (NULL) AS v(c0)"
    """
    names = [f"c{i}" for i in range(len(table.columns))]
    shown = zip(names, table.columns, strict=True)
    cast = ", ".join(f"CAST({name} AS {c.type}) AS {quote(c.name)}" for name, c in shown)
    if not rows:
        nothing = ", ".join(f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in table.columns)
        return f"SELECT {nothing} WHERE FALSE"
    values = ", ".join("(" + ", ".join(_literal(v) for v in row) + ")" for row in rows)
    return f"SELECT {cast} FROM VALUES {values} AS v({', '.join(names)})"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        text = value.isoformat()
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
