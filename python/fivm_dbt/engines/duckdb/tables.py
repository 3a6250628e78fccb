"""Versioned tables in DuckDB are a full copy per version; a change feed is computed from the copies.

The copies are ordinary tables named ``raw.flights@3``, the feed of version 3 is ``raw.flights#3``. Copies are
cheap as long as tables are small, which is what this engine is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.formats import FORMAT, ChangeFeedUnavailable, Commit, MissingRelation, VersionUnavailable

_DUCKDB_TYPES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
}
_SPARK_TYPES = {duck.lower(): spark for spark, duck in _DUCKDB_TYPES.items() if spark != "timestamp_ntz"} | {
    "hugeint": "bigint",
    "varchar": "string",
}
_KIND = FORMAT.change_type
_CLOCK_START = datetime(2024, 1, 1)
_CHUNK = 2000


def duckdb_type(type_: SparkType) -> str:
    """The DuckDB type of a column.

    >>> duckdb_type(SparkType.of("decimal(10,2)")), duckdb_type(SparkType.of("string"))
    ('DECIMAL(10,2)', 'VARCHAR')
    """
    if type_.is_decimal:
        return type_.text.upper()
    if type_.is_string:
        return "VARCHAR"
    if type_.is_array:
        return f"{duckdb_type(type_.element)}[]"
    if type_.text not in _DUCKDB_TYPES:
        raise ValueError(f"the DuckDB engine has no type for {type_}")
    return _DUCKDB_TYPES[type_.text]


def spark_type(duck: str) -> SparkType:
    """The Spark type of a DuckDB result column: a HUGEINT is a sum, which Spark keeps as bigint."""
    return SparkType.of(_SPARK_TYPES.get(duck.lower(), duck))


_Content = frozenset[tuple[Row, int]]


def _changed(content: _Content | None, insert: Sequence[Row], delete: Sequence[Row]) -> _Content | None:
    """The rows after a change, with their counts; None where they are not known or one to delete is not there."""
    if content is None:
        return None
    rows = Counter(dict(content))
    rows.update(insert)
    rows.subtract(delete)
    if any(count < 0 for count in rows.values()):
        return None
    return frozenset((row, count) for row, count in rows.items() if count)


@dataclass
class VersionedTable:
    """One table: its commits oldest first, and which of its versions' copies and feeds exist."""

    name: str
    has_feed: bool
    commits: list[Commit] = field(default_factory=list)
    copies: dict[int, str] = field(default_factory=dict)
    feeds: dict[int, str] = field(default_factory=dict)
    without_feed: set[int] = field(default_factory=set)
    number: int = -1
    """The greatest number of a commit with a note."""
    content: _Content | None = None
    """The rows of the newest version, where they are known."""

    @property
    def version(self) -> int:
        return self.commits[-1].version if self.commits else -1

    @property
    def newest(self) -> str:
        return self.copies[self.version]


class TableStore:
    """All versioned tables of one DuckDB connection. ``keep`` old versions stay readable, all if None.

    With ``shares_copies`` a version with the rows of an earlier one is the same copy: for tiny tables, whose rows
    are followed here.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, keep: int | None = None, *, shares_copies: bool = False
    ) -> None:
        self.connection = connection
        self._keep = keep
        self._tables: dict[str, VersionedTable] = {}
        self._rows: dict[str, int] = {}
        self._ticks = 0
        self._same: dict[tuple[str, _Content], str] | None = {} if shares_copies else None

    def __contains__(self, name: str) -> bool:
        return name in self._tables

    def table(self, name: str) -> VersionedTable:
        if name not in self._tables:
            raise MissingRelation(name)
        return self._tables[name]

    def add(self, name: str, has_feed: bool) -> VersionedTable:
        """A new table without any version yet, or the one that is there."""
        table = self._tables.setdefault(name, VersionedTable(name, has_feed))
        table.has_feed = has_feed
        return table

    def next_copy(self, table: VersionedTable) -> str:
        """The name under which the caller creates the copy that becomes the next version."""
        return f"{table.name}@{table.version + 1}"

    def commit(
        self,
        table: VersionedTable,
        copy: str,
        operation: str,
        written: int | None = None,
        appended: int | None = None,
        note: str | None = None,
    ) -> None:
        """Make ``copy`` the newest version. The clock of commits is a counter, the same in every run."""
        self._ticks += 1
        table.content = None
        time = _CLOCK_START + timedelta(milliseconds=self._ticks)
        stamp = time.isoformat(sep=" ", timespec="milliseconds")
        version = table.version + 1
        table.commits.append(Commit(version, stamp, operation, written=written, appended=appended, note=note))
        table.copies[version] = copy
        if not table.has_feed:
            table.without_feed.add(version)
        if self._keep is not None:
            self.vacuum(table.name, self._keep)

    def vacuum(self, name: str, keep: int = 0) -> None:
        """Drop all copies and feeds of a table but those of the newest version and of ``keep`` before it."""
        table = self.table(name)
        for kept in (table.copies, table.feeds):
            for version in [v for v in kept if v < table.version - keep]:
                copy = kept.pop(version)
                if copy not in kept.values():
                    self.discard(copy)
        if self._same is not None:
            self._same.clear()

    def drop(self, name: str) -> None:
        """Forget a table; when it is created anew, its version numbers restart."""
        table = self._tables.pop(name)
        for copy in (*table.copies.values(), *table.feeds.values()):
            self.discard(copy)
        if self._same is not None:
            self._same.clear()

    def discard(self, copy: str) -> None:
        self.connection.execute(f'DROP TABLE IF EXISTS "{copy}"')
        self._rows.pop(copy, None)

    def copy_of(self, name: str, version: int | None) -> str:
        """The DuckDB table with this version of a table."""
        table = self.table(name)
        if version is None:
            return table.newest
        if version not in table.copies:
            raise VersionUnavailable(f"{name} has no version {version} (newest {table.version})")
        return table.copies[version]

    def rows(self, copy: str) -> int:
        """The number of rows of a DuckDB table, counted once."""
        if copy not in self._rows:
            found = self.connection.execute(f'SELECT COUNT(*) FROM "{copy}"').fetchone()
            self._rows[copy] = int(found[0]) if found else 0
        return self._rows[copy]

    def forget_rows(self, copy: str) -> None:
        """The table has been changed in place: count again."""
        self._rows.pop(copy, None)

    def columns(self, copy: str) -> tuple[tuple[str, str], ...]:
        """Names and DuckDB types of a table's columns."""
        found = self.connection.execute(f'DESCRIBE "{copy}"').fetchall()
        return tuple((str(row[0]), str(row[1])) for row in found)

    def fill(self, copy: str, columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> None:
        """Create a DuckDB table with these rows."""
        defined = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
        self.connection.execute(f'CREATE TABLE "{copy}" ({defined})')
        marks = "(" + ", ".join("?" * len(columns)) + ")"
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            values = [value for row in chunk for value in row]
            self.connection.execute(f'INSERT INTO "{copy}" VALUES {", ".join([marks] * len(chunk))}', values)
        self._rows[copy] = len(rows)

    def change(self, name: str, insert: Sequence[Row], delete: Sequence[Row]) -> None:
        """One commit that removes one copy of each row of ``delete`` and adds the rows of ``insert``.

        As many rows as there are on both sides count as updates in the change feed.
        """
        table = self.table(name)
        old, new, feed = table.newest, self.next_copy(table), f"{name}#{table.version + 1}"
        columns = self.columns(old)
        updates = min(len(insert), len(delete))
        version = table.version + 1
        changes = [(*row, _KIND.went[-1 if i < updates else 0]) for i, row in enumerate(delete)]
        changes += [(*row, _KIND.came[-1 if i < updates else 0]) for i, row in enumerate(insert)]
        self.fill(feed, (*columns, (_KIND.name, "VARCHAR")), changes)
        names = ", ".join(f'"{column}"' for column, _ in columns)
        listed = (", ".join(f"'{kind}'" for kind in kinds) for kinds in (_KIND.went, _KIND.came))
        lost, came = (f'SELECT {names} FROM "{feed}" WHERE {_KIND.name} IN ({kinds})' for kinds in listed)
        content = _changed(table.content, insert, delete)
        shared = self._same.get((name, content)) if self._same is not None and content is not None else None
        if shared is not None:
            table.feeds[version] = feed
            self.commit(table, shared, "WRITE")
            table.content = content
            return
        kept = f'(FROM "{old}" EXCEPT ALL {lost})' if delete else f'FROM "{old}"'
        self.create_as(new, f"{kept} UNION ALL {came}")
        if self.rows(new) != self.rows(old) + len(insert) - len(delete):
            self.discard(new)
            self.discard(feed)
            raise ValueError(f"a row to delete from {name} is not there")
        table.feeds[version] = feed
        self.commit(table, new, "WRITE")
        self._remember(table, content)

    def _remember(self, table: VersionedTable, content: _Content | None) -> None:
        """What the newest version holds, so that a later one with the same rows needs no copy of its own."""
        if self._same is not None and content is not None:
            table.content = content
            self._same[table.name, content] = table.newest

    def create_as(self, copy: str, query: str) -> None:
        """Create a DuckDB table from a DuckDB query."""
        created = self.connection.execute(f'CREATE OR REPLACE TABLE "{copy}" AS {query}').fetchone()
        self._rows[copy] = int(created[0]) if created else 0

    def feed(self, name: str, first: int, last: int | None) -> str:
        """The DuckDB table with the changes of versions ``first`` to ``last`` (newest if None), inclusive."""
        table = self.table(name)
        last = table.version if last is None else last
        if not 0 <= first <= last <= table.version:
            raise ChangeFeedUnavailable(f"{name}: no change range {first} to {last} (newest {table.version})")
        off = sorted(table.without_feed & set(range(first, last + 1)))
        if off:
            raise ChangeFeedUnavailable(f"{name}: no change feed was recorded for version {off[0]}")
        feeds = [self._version_feed(table, version) for version in range(first, last + 1)]
        if len(feeds) == 1:
            return feeds[0]
        joined = f"{name}#{first}..{last}"
        try:
            self.create_as(joined, " UNION ALL ".join(f'FROM "{feed}"' for feed in feeds))
        except duckdb.Error as error:
            raise ChangeFeedUnavailable(f"{name}: columns changed in versions {first} to {last}") from error
        return joined

    def _version_feed(self, table: VersionedTable, version: int) -> str:
        if version in table.feeds:
            return table.feeds[version]
        old, new = table.copies.get(version - 1), table.copies.get(version)
        if new is None or (old is None and version > 0):
            raise ChangeFeedUnavailable(f"{table.name}: the change data of version {version} is gone")
        feed = f"{table.name}#{version}"
        operation = next(c.operation for c in table.commits if c.version == version)
        came, lost = f'FROM "{new}"', f'FROM "{old}"'
        if not operation.startswith("CREATE OR REPLACE"):  # there Delta lists every old and every new row
            came, lost = f"({came} EXCEPT ALL {lost})", f"({lost} EXCEPT ALL {came})"
        if old is None:
            query = f"SELECT *, '{_KIND.came[0]}' AS {_KIND.name} FROM \"{new}\""
        else:
            query = f"SELECT *, '{_KIND.came[0]}' AS {_KIND.name} FROM ({came})"
            query += f" UNION ALL SELECT *, '{_KIND.went[0]}' AS {_KIND.name} FROM ({lost})"
        try:
            self.create_as(feed, query)
        except duckdb.Error as error:
            raise ChangeFeedUnavailable(f"{table.name}: columns changed in version {version}") from error
        table.feeds[version] = feed
        return feed

    def recreate(self, name: str, columns: tuple[Column, ...], rows: Sequence[Row]) -> None:
        """Drop a table and create it anew: its numbers restart, its old versions are gone."""
        has_feed = self.table(name).has_feed
        self.drop(name)
        self.create(name, columns, rows, has_feed)

    def create(self, name: str, columns: tuple[Column, ...], rows: Sequence[Row], has_feed: bool) -> None:
        """A table whose version 0 has these rows."""
        table = self.add(name, has_feed)
        copy = self.next_copy(table)
        self.fill(copy, [(c.name, duckdb_type(c.type)) for c in columns], rows)
        self.commit(table, copy, "CREATE TABLE AS SELECT")
        self._remember(table, frozenset(Counter(rows).items()))

    def load(self, name: str, columns: tuple[Column, ...], file: Path, has_feed: bool) -> None:
        """A table whose version 0 has the rows of a Parquet file, cast to these columns."""
        table = self.add(name, has_feed)
        copy = self.next_copy(table)
        cast = ", ".join(f'CAST("{c.name}" AS {duckdb_type(c.type)}) AS "{c.name}"' for c in columns)
        path = str(file).replace("'", "''")
        self.create_as(copy, f"SELECT {cast} FROM read_parquet('{path}')")
        self.commit(table, copy, "CREATE TABLE AS SELECT")

    def replace(self, name: str, rows: Sequence[Row]) -> None:
        """CREATE OR REPLACE TABLE with these rows: the next version of the same table."""
        table = self.table(name)
        copy = self.next_copy(table)
        self.fill(copy, self.columns(table.newest), rows)
        self.commit(table, copy, "CREATE OR REPLACE TABLE AS SELECT")
