"""The DuckDB engine runs a plan's Spark SQL in process, with kept copies of old table versions.

It exists to test thousands of refreshes in seconds and to let users replay scenarios without a warehouse.
Spark has the last word: what DuckDB does otherwise is listed in ``functions.py`` and, for division of
decimals (done in doubles here), tolerated by the comparison.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import duckdb

from fivm_dbt.catalog import Column, KeyRange
from fivm_dbt.engines.duckdb.functions import MACROS, NO_OPTIMIZER, SETTINGS
from fivm_dbt.engines.duckdb.reads import Reads
from fivm_dbt.engines.duckdb.tables import TableStore, spark_type
from fivm_dbt.engines.duckdb.writes import Writes
from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import ROOT, VIEW, canonical, quote
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.answers import Answers
from fivm_dbt.refresh.engine import Expected, Metrics, Row
from fivm_dbt.spark.formats import Commit, NotVersioned

_BYTES_PER_VALUE = 16
_PIECES = 16
"""So many files a table has, for those who ask what is in them."""

_FEW = 20
"""Rows of a staged result that are looked at one by one."""

_numbers = itertools.count(1)


@functools.cache
def _for_tiny_ones() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all engines over tiny tables, each with a database in it.

    Starting one and defining its macros takes longer than most scenarios.
    """
    connection = duckdb.connect(":memory:")
    for statement in (NO_OPTIMIZER, *MACROS):
        connection.execute(statement)
    return connection


def _detach(catalog: str) -> None:
    """Let go of the tables of a tiny engine, if that has not been done."""
    _for_tiny_ones().execute(f"DETACH DATABASE IF EXISTS {catalog}")


class DuckDbEngine:
    """An :class:`~fivm_dbt.refresh.engine.Engine` over an in-memory DuckDB.

    Only for one thread at a time. ``keep`` bounds how many old versions of a table stay readable. ``tiny``
    says that tables have a few dozen rows and nobody asks what was read: no optimiser, no counting.
    """

    def __init__(self, keep: int | None = None, *, tiny: bool = False) -> None:
        self._catalog = f"tiny_{next(_numbers)}" if tiny else None
        if self._catalog is None:
            self._connection = duckdb.connect(":memory:")
            for macro in MACROS:
                self._connection.execute(macro)
        else:
            self._connection = _for_tiny_ones().cursor()
            self._connection.execute(f"ATTACH ':memory:' AS {self._catalog}")
            # Tables are its own, macros those of all.
            self._connection.execute(f"SET search_path = '{self._catalog},memory'")
            # Its tables take memory of all, also of engines that nobody closes.
            weakref.finalize(self, _detach, self._catalog)
        for setting in SETTINGS:
            self._connection.execute(setting)
        self.tables = TableStore(self._connection, keep, shares_copies=tiny)
        self._reads = Reads(self.tables, is_counting=not tiny)
        self._writes = Writes(self._reads)
        self.answers = Answers()
        self.fixed_clock: Clock | None = None
        self._counts: dict[str, Row] = {}
        """Of what is deferred the aggregates that were asked for."""
        self._local = threading.local()

    @property
    def name(self) -> str:
        return "duckdb"

    @property
    def session(self) -> int:
        return id(self)

    @property
    def writes_changes(self) -> bool:
        return True

    @property
    def deletes_rows(self) -> bool:
        return True

    def has_vectors(self, relation: str) -> bool:
        return self._writes.allows_vectors(canonical(relation))

    @property
    def defers(self) -> bool:
        return True

    def create_table(
        self, name: str, columns: tuple[Column, ...], rows: Sequence[Row] = (), *, change_feed: bool = True
    ) -> None:
        """A new table; ``rows`` are in its version 0."""
        self.tables.create(canonical(name), columns, rows, change_feed)

    def load_table(
        self, name: str, columns: tuple[Column, ...], file: Path, *, change_feed: bool = True
    ) -> None:
        """A new table; version 0 has the rows of a Parquet file with columns of these names."""
        self.tables.load(canonical(name), columns, file, change_feed)

    def change(self, name: str, *, insert: Sequence[Row] = (), delete: Sequence[Row] = ()) -> None:
        """One commit with these rows coming and going. ValueError if a row to delete is not there."""
        self.tables.change(canonical(name), insert, delete)

    def replace(self, name: str, rows: Sequence[Row]) -> None:
        """CREATE OR REPLACE TABLE: the version numbers go on."""
        self.tables.replace(canonical(name), rows)

    def recreate(self, name: str, rows: Sequence[Row]) -> None:
        """Drop and create anew: the version numbers restart and old versions are gone."""
        relation = canonical(name)
        columns = self.tables.columns(self.tables.copy_of(relation, None))
        self.tables.recreate(relation, tuple(Column(n, spark_type(t)) for n, t in columns), rows)
        self._reads.forget()

    def drop(self, name: str) -> None:
        self.tables.drop(canonical(name))
        self._reads.forget()

    def vacuum(self, name: str) -> None:
        """Make every version but the newest unreadable, its changes too."""
        self.tables.vacuum(canonical(name))

    def close(self) -> None:
        if self._catalog is not None:
            self._connection.execute("USE memory")
            _detach(self._catalog)
        self._connection.close()

    def run(self, sql: str) -> None:
        statement, cut = self._reads.statement(sql)
        if statement.kind == "query":
            self._reads.connection.execute(self._reads.text(statement, cut))
        else:
            self._writes.run(statement, cut, self._note)

    def commit(self, sql: str, note: Note) -> None:
        target = self._reads.statement(sql)[0].target
        if target in self.tables and self.tables.table(target).number >= note.number:
            return  # as Delta: a transaction of this number has been made
        self._local.note = note.text
        try:
            self.run(sql)
        finally:
            self._local.note = None
        self.tables.table(target).number = note.number
        written = note.written
        if written is not None and (written.tells_changes or written.deleted or written.allows_vectors):
            self._writes.check_written(target, written)

    def query(self, sql: str) -> Sequence[Row]:
        """Rows of a query; of a MERGE, as Delta answers, the number of rows that it changed."""
        statement, cut = self._reads.statement(sql)
        if statement.kind == "merge":
            return [(self._writes.run(statement, cut, self._note),)]
        return self._reads.rows(statement, cut)

    def describe(self, sql: str) -> tuple[Column, ...]:
        """Types as DuckDB derives them, in Spark's names: decimals may be wider or narrower than Spark's."""
        rows = self._reads.connection.execute(f"DESCRIBE {self._reads.filled(sql)}").fetchall()
        return tuple(Column(str(row[0]), spark_type(str(row[1]))) for row in rows)

    def commits(self, relation: str, since: int | None) -> Sequence[Commit]:
        name = canonical(relation)
        if name not in self.tables and (name in self._reads.views or name in self._reads.staged):
            raise NotVersioned(name)
        commits = self.tables.table(name).commits[::-1]
        if since is None:
            return commits[:1]
        return [c for c in commits if c.version >= since] or commits[:1]

    def has_change_feed(self, relation: str) -> bool:
        return self.tables.table(canonical(relation)).has_feed

    def expect(self, tables: Sequence[Expected]) -> None:
        """Tables here have no files."""

    def stage(self, name: str, sql: str) -> None:
        self._reads.stage(name, sql)

    def stage_all(self, staged: Sequence[tuple[str, str]]) -> None:
        for name, sql in staged:
            self.stage(name, sql)

    def defer(self, name: str, sql: str, counts: Sequence[str]) -> None:
        """Rows are copied all the same, as tables may be written to before they are read."""
        self.stage(name, sql)
        if counts:
            self._counts[canonical(name)] = self.query(f"SELECT {', '.join(counts)} FROM {name}")[0]

    def counted(self, name: str) -> Row | None:
        return self._counts.pop(canonical(name))

    def staged_rows(self, name: str, sql: str) -> Sequence[Row] | None:
        """Of few rows, so that large results are counted by a query, as on Spark."""
        copy = self._reads.staged[canonical(name)]
        return self.query(sql) if self.tables.rows(copy) <= _FEW else None

    def unstage(self, name: str) -> None:
        # The rows stay until the name is staged again: dropping a table takes as long as reading it.
        self._reads.staged.pop(canonical(name), None)

    def compact(self, sql: str) -> None:
        """Tables here have no files."""

    def size(self, relation: str) -> int | None:
        """An estimate: 16 bytes per value."""
        name = canonical(relation)
        if name in self._reads.view_texts:
            raise NotVersioned(f"{relation} is a view")
        if name not in self.tables or not self._reads.is_counting:
            return None
        copy = self.tables.copy_of(name, None)
        return self.tables.rows(copy) * len(self.tables.columns(copy)) * _BYTES_PER_VALUE

    def files(self, relation: str, columns: Sequence[str]) -> Sequence[Mapping[str, KeyRange]]:
        """Stretches of the rows in the order in which they lie."""
        name = canonical(relation)
        if name not in self.tables or not self._reads.is_counting:
            return ()
        copy = self.tables.copy_of(name, None)
        ends = ", ".join(f"min({quote(c)}), max({quote(c)})" for c in columns)
        piece = f"rowid * {_PIECES} // {max(1, self.tables.rows(copy))}"
        shown = f" WHERE {quote(VIEW)} = '{ROOT}'" if VIEW in dict(self.tables.columns(copy)) else ""
        query = f'SELECT count(*), {ends} FROM "{copy}"{shown} GROUP BY {piece}'
        return [
            {
                column: KeyRange(KeyRange.number(low), KeyRange.number(high), rows)
                for column, low, high in zip(columns, values[::2], values[1::2], strict=True)
                if low is not None
            }
            for rows, *values in self._reads.connection.execute(query).fetchall()
        ]

    def sample(self, name: str, relation: str) -> None:
        """Tables have no files."""

    def written(self, relation: str) -> None:
        """Nor have they a log of files."""

    def exists(self, relation: str) -> bool:
        return self._reads.exists(canonical(relation))

    def is_view_of(self, relation: str, query: str) -> bool:
        return self._reads.view_texts.get(canonical(relation)) == query

    def clock(self) -> Clock:
        """The time that was set, or now; sessions are in UTC."""
        return self.fixed_clock or Clock.at(datetime.now(timezone.utc))

    def start_measuring(self, tag: str) -> None:
        self._reads.start_measuring(tag)

    def measured(self, tag: str) -> Metrics:
        return self._reads.measured(tag)

    @property
    def _note(self) -> str | None:
        """What goes beside the commit of this thread's statement."""
        return getattr(self._local, "note", None)
