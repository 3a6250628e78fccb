"""The DuckDB engine: runs a plan's Spark SQL in process, with kept copies of old table versions.

It exists to test thousands of refreshes in seconds and to let users replay scenarios without a warehouse.
Spark has the last word: what DuckDB does otherwise is listed in ``duckdb_functions`` and, for division of
decimals (done in doubles here), tolerated by the comparison.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import duckdb
from sqlglot import exp

from fivm_dbt.catalog import Column
from fivm_dbt.engines.duckdb.functions import MACROS, NO_OPTIMIZER, SETTINGS
from fivm_dbt.engines.duckdb.literals import Cut, cut_literals
from fivm_dbt.engines.duckdb.sql import TARGET, Slot, Statement, transpile, with_versions
from fivm_dbt.engines.duckdb.tables import TableStore, spark_type
from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import CHANGE_TYPE, VIEW, canonical
from fivm_dbt.plan.model.head import Note, Written
from fivm_dbt.refresh.engine import Commit, Expected, Metrics, MissingRelation, NotVersioned, Row

_FEED_PROPERTY = "delta.enablechangedatafeed"
_BYTES_PER_VALUE = 16
_FEW = 20
"""Rows of a staged result that are looked at one by one."""


_numbers = itertools.count(1)

_MANY = 10_000
_TRANSPILED: dict[tuple[str, frozenset[tuple[str, str]]], Statement] = {}
"""Statements by their text and the views that there are: engines of one process often run the same."""


@functools.cache
def _for_tiny_ones() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all engines over tiny tables, each with a database in it.

    Starting one and defining its macros takes longer than most scenarios.
    """
    connection = duckdb.connect(":memory:")
    for statement in (NO_OPTIMIZER, *MACROS):
        connection.execute(statement)
    return connection


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
        for setting in SETTINGS:
            self._connection.execute(setting)
        self._is_counting = not tiny
        self._results: dict[str, list[Row]] = {}
        self._once: dict[str, str] = {}
        self.tables = TableStore(self._connection, keep, shares_copies=tiny)
        self.fixed_clock: Clock | None = None
        self._views: dict[str, exp.Query] = {}
        self._view_texts: dict[str, str] = {}
        self._staged: dict[str, str] = {}
        self._counts: dict[str, Row] = {}
        """Of what is deferred the aggregates that were asked for."""
        self._narrow: dict[tuple[str, tuple[Slot, ...]], str] = {}
        self._local = threading.local()
        self._scans: defaultdict[str, Counter[str]] = defaultdict(Counter)

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
        self._forget()

    def drop(self, name: str) -> None:
        self.tables.drop(canonical(name))
        self._narrow.clear()
        self._forget()

    def vacuum(self, name: str) -> None:
        """Make every version but the newest unreadable, its changes too."""
        self.tables.vacuum(canonical(name))

    def close(self) -> None:
        if self._catalog is not None:
            self._connection.execute("USE memory")
            self._connection.execute(f"DETACH {self._catalog}")
        self._connection.close()

    def run(self, sql: str) -> None:
        statement, cut = self._statement(sql)
        if statement.kind == "query":
            self._read(statement, cut)
        elif statement.kind in ("create", "define"):
            self._create(statement, cut)
        elif statement.kind == "view":
            self._create_view(statement, cut)
        elif statement.kind == "drop":
            self._drop(statement)
        else:
            self._write(statement, cut)

    def commit(self, sql: str, note: Note) -> None:
        target = self._statement(sql)[0].target
        if target in self.tables and self.tables.table(target).number >= note.number:
            return  # as Delta: a transaction of this number has been made
        self._local.note = note.text
        try:
            self.run(sql)
        finally:
            self._local.note = None
        self.tables.table(target).number = note.number
        if note.written is not None and note.written.tells_changes:
            self._check_changes(target, note.written)

    def _check_changes(self, target: str, written: Written) -> None:
        """A change feed here is the difference of two versions: what a writer tells of a view has to be that.

        The rows of the table that it has beside these have to be those of the statement.
        """
        told, table = f"told {next(_numbers)}", self.tables.table(target)
        self.tables.create_as(told, self._filled(written.query))
        new, old = (self.tables.copy_of(target, table.version - back) for back in (0, 1))
        names = ", ".join(f'"{name}"' for name, _ in self.tables.columns(new))

        def less(one: str, other: str) -> str:
            return f"((SELECT {names} FROM {one}) EXCEPT ALL (SELECT {names} FROM {other}))"

        def of_view(copy: str) -> str:
            views = f'SELECT "{VIEW}" FROM "{told}" WHERE "{CHANGE_TYPE}" IS NOT NULL'
            return f'(FROM "{copy}" WHERE "{VIEW}" IN ({views}))'

        came, went = (f'(FROM "{told}" WHERE "{CHANGE_TYPE}" = \'{kind}\')' for kind in ("insert", "delete"))
        rows = f'(FROM "{told}" WHERE "{CHANGE_TYPE}" IS NULL)'
        replaced = f"({self._filled(f'SELECT * FROM {target} WHERE {written.instead}')})"
        for said, is_so in (
            (less(came, went), less(of_view(new), of_view(old))),
            (less(went, came), less(of_view(old), of_view(new))),
            (f"(SELECT {names} FROM {rows})", f"(SELECT {names} FROM {replaced})"),
        ):
            wrong = f"({said} EXCEPT ALL {is_so}) UNION ALL ({is_so} EXCEPT ALL {said})"
            found = self._connection.execute(wrong).fetchall()
            assert not found, f"the commit of {target} is told wrongly: {found[:5]}"
        self.tables.discard(told)

    def _filled(self, sql: str) -> str:
        """A query in DuckDB's SQL, over the copies that it reads. It is not counted as a read of a refresh."""
        statement, cut = self._statement(sql)
        tables = {slot.token: self._table(slot, cut) for slot in statement.slots}
        return cut.fill(statement.fill(statement.body, tables))

    def query(self, sql: str) -> Sequence[Row]:
        """Rows of a query; of a MERGE, as Delta answers, the number of rows that it changed."""
        statement, cut = self._statement(sql)
        if statement.kind == "merge":
            return [(self._write(statement, cut),)]
        if self._is_counting or self._reads_staged(statement):
            return _rows(self._read(statement, cut))
        # A committed version never changes: the same text over the same copies has the same rows.
        text = cut.fill(statement.fill(statement.body, self._tables(statement, cut)))
        if text not in self._results:
            self._results[text] = _rows(self._connection.execute(text))
        return self._results[text]

    def describe(self, sql: str) -> tuple[Column, ...]:
        """Types as DuckDB derives them, in Spark's names: decimals may be wider or narrower than Spark's."""
        rows = self._connection.execute(f"DESCRIBE {self._filled(sql)}").fetchall()
        return tuple(Column(str(row[0]), spark_type(str(row[1]))) for row in rows)

    def commits(self, relation: str, since: int | None) -> Sequence[Commit]:
        name = canonical(relation)
        if name not in self.tables and (name in self._views or name in self._staged):
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
        statement, cut = self._statement(sql)
        text = cut.fill(statement.fill(statement.body, self._tables(statement, cut)))
        copy = f"staged {name}"
        if not self._is_counting and not self._reads_staged(statement):
            # Several models stage the same change of an input.
            if text in self._once:
                self._staged[canonical(name)] = self._once[text]
                return
            copy = f"staged once {next(_numbers)}"
        self.tables.create_as(copy, text)
        if copy.startswith("staged once "):
            self._once[text] = copy
        self._staged[canonical(name)] = copy

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
        copy = self._staged[canonical(name)]
        return self.query(sql) if self.tables.rows(copy) <= _FEW else None

    def unstage(self, name: str) -> None:
        # The rows stay until the name is staged again: dropping a table takes as long as reading it.
        self._staged.pop(canonical(name), None)

    def compact(self, sql: str) -> None:
        """Tables here have no files."""

    def size(self, relation: str) -> int | None:
        """An estimate: 16 bytes per value."""
        name = canonical(relation)
        if name not in self.tables or not self._is_counting:
            return None
        copy = self.tables.copy_of(name, None)
        return self.tables.rows(copy) * len(self.tables.columns(copy)) * _BYTES_PER_VALUE

    def exists(self, relation: str) -> bool:
        name = canonical(relation)
        return name in self.tables or name in self._views

    def is_view_of(self, relation: str, query: str) -> bool:
        return self._view_texts.get(canonical(relation)) == query

    def clock(self) -> Clock:
        """The time that was set, or now; sessions are in UTC."""
        return self.fixed_clock or Clock.at(datetime.now(timezone.utc))

    def start_measuring(self, tag: str) -> None:
        self._local.tag = tag
        self._scans[tag] = Counter()

    def measured(self, tag: str) -> Metrics:
        """An upper bound: the rows of every table or staged result that a statement names, each time.

        They are those in the partitions that it names by literals, as Delta reads, or else all. So are the rows of the
        table that a MERGE writes to.
        """
        scans = self._scans.get(tag, Counter())
        read = sum(scans.values()) if self._is_counting else None
        return Metrics(rows_read=read, scans=tuple(sorted(scans.items())))

    def _statement(self, sql: str) -> tuple[Statement, Cut]:
        cut = cut_literals(sql)
        key = (cut.template, frozenset(self._view_texts.items()))
        statement = _TRANSPILED.get(key)  # which another thread's engine may clear
        if statement is None:
            if len(_TRANSPILED) >= _MANY:
                _TRANSPILED.clear()
            statement = _TRANSPILED[key] = transpile(cut.template, self._views)
        return statement, cut

    def _reads_staged(self, statement: Statement) -> bool:
        """Whether a statement reads what may be staged anew under the same name."""
        staged = (self._staged.get(slot.relation) for slot in statement.slots if slot.first is None)
        return any(copy is not None and not copy.startswith("staged once ") for copy in staged)

    def _forget(self) -> None:
        """Versions restart with a table, and so do the names of its copies."""
        self._results.clear()
        self._once.clear()

    def _tables(self, statement: Statement, cut: Cut) -> dict[str, str]:
        tables = {slot.token: self._table(slot, cut) for slot in statement.slots}
        tag = getattr(self._local, "tag", None)
        if tag is not None and self._is_counting:
            for slot in statement.slots:
                self._scans[tag][slot.counted_as] += self._rows_read(tables[slot.token], slot.where, cut)
        return tables

    def _rows_read(self, copy: str, where: str, cut: Cut) -> int:
        if not where:
            return self.tables.rows(copy)
        query = f'SELECT COUNT(*) FROM "{copy}" WHERE {cut.fill(where)}'
        ((rows,),) = self._connection.execute(query).fetchall()
        return int(rows)

    def _table(self, slot: Slot, cut: Cut) -> str:
        if slot.pinned is not None:
            return self.tables.copy_of(slot.relation, slot.pinned)
        if slot.first is None:
            staged = self._staged.get(slot.relation)
            return staged or self.tables.copy_of(slot.relation, None)
        if not slot.is_changes:
            return self.tables.copy_of(slot.relation, cut.numbers[slot.first])
        last = cut.numbers[slot.last] if slot.last is not None else -1
        return self.tables.feed(slot.relation, cut.numbers[slot.first], last if last >= 0 else None)

    def _read(self, statement: Statement, cut: Cut) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(
            cut.fill(statement.fill(statement.body, self._tables(statement, cut)))
        )

    def _create_narrow(self, copy: str, statement: Statement, cut: Cut) -> None:
        """Create a table from a query whose HUGEINT columns (DuckDB's sums of integers) become BIGINT."""
        key = (statement.body, statement.slots)
        body = self._narrow.get(key, statement.body)
        self.tables.create_as(copy, cut.fill(statement.fill(body, self._tables(statement, cut))))
        if key in self._narrow:
            return
        wide = [f'CAST("{n}" AS BIGINT) AS "{n}"' for n, t in self.tables.columns(copy) if t == "HUGEINT"]
        self._narrow[key] = statement.body
        if wide:
            self._narrow[key] = f"SELECT * REPLACE ({', '.join(wide)}) FROM ({statement.body})"
            self._create_narrow(copy, statement, cut)

    def _create(self, statement: Statement, cut: Cut) -> None:
        name = statement.target
        if self.exists(name) and not statement.is_replacing:
            if statement.is_lenient:
                return
            raise duckdb.CatalogException(f"{name} exists already")
        if name in self._views:
            raise duckdb.CatalogException(f"{name} is a view")
        is_new = name not in self.tables
        self._narrow.clear()  # the table's columns may become others
        properties = {key.lower(): value.lower() for key, value in statement.properties}
        table = self.tables.add(name, properties.get(_FEED_PROPERTY) == "true")
        copy = self.tables.next_copy(table)
        try:
            if statement.kind == "define":
                self._connection.execute(statement.fill(statement.body, {TARGET: copy}))
            else:
                self._create_narrow(copy, statement, cut)
        except Exception:
            if is_new:
                self.tables.drop(name)
            raise
        verb = "CREATE OR REPLACE TABLE" if statement.is_replacing else "CREATE TABLE"
        operation = verb if statement.kind == "define" else f"{verb} AS SELECT"
        self.tables.commit(table, copy, operation, note=self._note)

    def _create_view(self, statement: Statement, cut: Cut) -> None:
        assert statement.view is not None
        name, query = statement.target, with_versions(statement.view, cut.numbers)
        if name in self.tables:
            raise duckdb.CatalogException(f"{name} is a table")
        if name in self._views and not statement.is_replacing:
            raise duckdb.CatalogException(f"{name} exists already")
        if self._views.get(name) != query:
            self._views[name] = query
            self._view_texts[name] = query.sql(dialect="spark")

    def _drop(self, statement: Statement) -> None:
        name = statement.target
        if name in self.tables:
            self.drop(name)
        elif name in self._views:
            del self._views[name], self._view_texts[name]
        elif not statement.is_lenient:
            raise MissingRelation(name)

    def _write(self, statement: Statement, cut: Cut) -> int:
        """Change a copy and commit it: an error leaves the table as it was. Returns the rows changed."""
        table = self.tables.table(statement.target)
        old, new = table.newest, self.tables.next_copy(table)
        tables = {**self._tables(statement, cut), TARGET: new}
        tag = getattr(self._local, "tag", None)
        if tag is not None and self._is_counting and statement.kind == "merge":
            self._scans[tag][statement.target] += self._rows_read(old, statement.touches, cut)
        self.tables.create_as(new, f'FROM "{old}"' + (" LIMIT 0" if statement.kind == "overwrite" else ""))
        try:
            removed: int | None = None if statement.kind == "overwrite" else 0
            if statement.before:
                removed = _count(self._connection.execute(cut.fill(statement.fill(statement.before, tables))))
            if statement.doubled:
                doubled = self._connection.execute(cut.fill(statement.fill(statement.doubled, tables)))
                if doubled.fetchone() is not None:
                    raise duckdb.ConstraintException("several rows of the source match one row of the target")
            changed = self._connection.execute(cut.fill(statement.fill(statement.body, tables))).fetchone()
        except Exception:
            self.tables.discard(new)
            raise
        rows = int(changed[0]) if changed else 0
        if removed == 0 and rows == 0:
            self.tables.discard(new)  # as Delta: what changes nothing is no commit
            return 0
        self.tables.forget_rows(new)
        if statement.kind == "merge":
            self.tables.commit(table, new, "MERGE", note=self._note)
        else:
            appended = rows if removed == 0 else None
            self.tables.commit(table, new, "WRITE", written=rows, appended=appended, note=self._note)
        return rows

    @property
    def _note(self) -> str | None:
        """What goes beside the commit of this thread's statement."""
        return getattr(self._local, "note", None)


def _count(changing: duckdb.DuckDBPyConnection) -> int:
    """How many rows a statement has changed."""
    found = changing.fetchone()
    return int(found[0]) if found else 0


def _fits_bigint(value: object) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _rows(result: duckdb.DuckDBPyConnection) -> list[Row]:
    """The rows of a result, with structs as tuples of their fields, as Spark gives them."""
    types = [str(column[1]) for column in result.description or []]
    has_structs = any(type_.startswith("STRUCT") for type_ in types)
    rows: list[Row] = result.fetchall()
    sums = [index for index, type_ in enumerate(types) if type_ == "HUGEINT"]
    if any(not _fits_bigint(row[index]) for row in rows for index in sums):
        raise duckdb.OutOfRangeException("a sum of integers leaves BIGINT")
    if not has_structs:
        return rows
    return [tuple(tuple(v.values()) if isinstance(v, dict) else v for v in row) for row in rows]
