"""Writes create, change and drop the tables and views that statements name."""

from __future__ import annotations

import duckdb

from fivm_dbt.engines.duckdb.literals import Cut
from fivm_dbt.engines.duckdb.reads import Reads
from fivm_dbt.engines.duckdb.sql import TARGET, Statement, with_versions
from fivm_dbt.naming import ROW, VIEW
from fivm_dbt.plan.model.head import Written
from fivm_dbt.spark.formats import CHANGE_FEED, FORMAT, MissingRelation

_KIND = FORMAT.change_type


class Writes:
    """Each is a commit of a table or defines a view; ``note`` goes beside the commit."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._tables = reads.tables
        self._with_vectors: set[str] = set()

    def run(self, statement: Statement, cut: Cut, note: str | None) -> int:
        """Run a statement that is no query; the rows that a change of a table has changed."""
        if statement.kind in ("create", "define"):
            self._create(statement, cut, note)
        elif statement.kind == "view":
            self._create_view(statement, cut)
        elif statement.kind == "drop":
            self._drop(statement)
        else:
            return self._change(statement, cut, note)
        return 0

    def check_written(self, target: str, written: Written) -> None:
        """What a writer of its own would have written has to be what a statement has.

        The rows that stay and those that come have to be the table, and a change feed, which here is the difference of
        two versions, what the writer tells of a view.
        """
        assert not written.deleted or self.allows_vectors(target)
        if written.allows_vectors:
            self._with_vectors.add(target)
        told, table = "told changes", self._tables.table(target)
        untold = "" if written.tells_changes else f", CAST(NULL AS VARCHAR) AS {_KIND.name}"
        self._tables.create_as(told, f"SELECT *{untold} FROM ({self._reads.filled(written.query)})")
        new, old = (self._tables.copy_of(target, table.version - back) for back in (0, 1))
        names = ", ".join(f'"{name}"' for name, _ in self._tables.columns(new))

        def less(one: str, other: str) -> str:
            return f"((SELECT {names} FROM {one}) EXCEPT ALL (SELECT {names} FROM {other}))"

        def of_view(copy: str) -> str:
            views = f'SELECT "{VIEW}" FROM "{told}" WHERE "{_KIND.name}" IS NOT NULL'
            return f'(FROM "{copy}" WHERE "{VIEW}" IN ({views}))'

        kinds = (_KIND.came[0], _KIND.went[0])
        came, went = (f'(FROM "{told}" WHERE "{_KIND.name}" = \'{kind}\')' for kind in kinds)
        rows = f'(FROM "{told}" WHERE "{_KIND.name}" IS NULL)'
        stay = f"({self._reads.filled(_staying(target, table.version - 1, written))})"
        both = f"(SELECT {names} FROM {rows} UNION ALL SELECT {names} FROM {stay})"
        feed = (
            (less(came, went), less(of_view(new), of_view(old))),
            (less(went, came), less(of_view(old), of_view(new))),
        )
        for said, is_so in (
            *(feed if written.tells_changes else ()),
            (both, f'(SELECT {names} FROM "{new}")'),
        ):
            wrong = f"({said} EXCEPT ALL {is_so}) UNION ALL ({is_so} EXCEPT ALL {said})"
            found = self._reads.connection.execute(wrong).fetchall()
            assert not found, f"the commit of {target} is told wrongly: {found[:5]}"
        self._tables.discard(told)

    def allows_vectors(self, target: str) -> bool:
        """Whether a commit of a table, as it was created last, has allowed vectors."""
        return target in self._with_vectors

    def _create_narrow(self, copy: str, statement: Statement, cut: Cut) -> None:
        """Create a table from a query whose HUGEINT columns (DuckDB's sums of integers) become BIGINT."""
        self._tables.create_as(copy, self._reads.text(statement, cut))
        wide = [f'CAST("{n}" AS BIGINT) AS "{n}"' for n, t in self._tables.columns(copy) if t == "HUGEINT"]
        if wide:
            text = self._reads.text(statement, cut)  # runs again, and is counted again
            self._tables.create_as(copy, f"SELECT * REPLACE ({', '.join(wide)}) FROM ({text})")

    def _create(self, statement: Statement, cut: Cut, note: str | None) -> None:
        name = statement.target
        if self._reads.exists(name) and not statement.is_replacing:
            if statement.is_lenient:
                return
            raise duckdb.CatalogException(f"{name} exists already")
        if name in self._reads.views:
            raise duckdb.CatalogException(f"{name} is a view")
        is_new = name not in self._tables
        self._with_vectors.discard(name)
        table = self._tables.add(name, CHANGE_FEED in statement.properties)
        copy = self._tables.next_copy(table)
        try:
            if statement.kind == "define":
                self._reads.connection.execute(statement.fill(statement.body, {TARGET: copy}))
            else:
                self._create_narrow(copy, statement, cut)
        except Exception:
            if is_new:
                self._tables.drop(name)
            raise
        verb = "CREATE OR REPLACE TABLE" if statement.is_replacing else "CREATE TABLE"
        operation = verb if statement.kind == "define" else f"{verb} AS SELECT"
        self._tables.commit(table, copy, operation, note=note)

    def _create_view(self, statement: Statement, cut: Cut) -> None:
        assert statement.view is not None
        name, query = statement.target, with_versions(statement.view, cut.numbers)
        if name in self._tables:
            raise duckdb.CatalogException(f"{name} is a table")
        if name in self._reads.views and not statement.is_replacing:
            raise duckdb.CatalogException(f"{name} exists already")
        if self._reads.views.get(name) != query:
            self._reads.views[name] = query
            self._reads.view_texts[name] = query.sql(dialect="spark")

    def _drop(self, statement: Statement) -> None:
        name = statement.target
        if name in self._tables:
            self._tables.drop(name)
            self._reads.forget()
        elif name in self._reads.views:
            del self._reads.views[name], self._reads.view_texts[name]
        elif not statement.is_lenient:
            raise MissingRelation(name)

    def _change(self, statement: Statement, cut: Cut, note: str | None) -> int:
        """Change a copy and commit it: an error leaves the table as it was. Returns the rows changed."""
        table = self._tables.table(statement.target)
        old, new = table.newest, self._tables.next_copy(table)
        copies = {**self._reads.copies(statement, cut), TARGET: new}

        def run(text: str) -> duckdb.DuckDBPyConnection:
            return self._reads.connection.execute(cut.fill(statement.fill(text, copies)))

        if statement.kind == "merge":
            self._reads.count(statement.target, old, statement.touches, cut)
        self._tables.create_as(new, f'FROM "{old}"' + (" LIMIT 0" if statement.kind == "overwrite" else ""))
        try:
            removed: int | None = None if statement.kind == "overwrite" else 0
            if statement.before:
                removed = _count(run(statement.before))
            if statement.doubled and run(statement.doubled).fetchone() is not None:
                raise duckdb.ConstraintException("several rows of the source match one row of the target")
            rows = _count(run(statement.body))
        except Exception:
            self._tables.discard(new)
            raise
        if removed == 0 and rows == 0:
            self._tables.discard(new)  # as Delta: what changes nothing is no commit
            return 0
        self._tables.forget_rows(new)
        if statement.kind == "merge":
            self._tables.commit(table, new, "MERGE", note=note)
        else:
            appended = rows if removed == 0 else None
            self._tables.commit(table, new, "WRITE", written=rows, appended=appended, note=note)
        return rows


def _staying(target: str, version: int, written: Written) -> str:
    """The rows of a version that a commit does not replace, in Spark SQL."""
    deleted = [f"SELECT {ROW} FROM {name}" for name in written.deleted]
    gone = [f"coalesce({written.instead}, false)"] if written.instead is not None else []
    _, row = FORMAT.place_of_row
    gone += [f"{row.sql()} IN ({' UNION ALL '.join(deleted)})"] if deleted else []
    where = f" WHERE NOT ({' OR '.join(gone)})" if gone else ""
    return f"SELECT * FROM {FORMAT.pinned(target, version).sql(dialect='spark')}{where}"


def _count(changing: duckdb.DuckDBPyConnection) -> int:
    """How many rows a statement has changed."""
    found = changing.fetchone()
    return int(found[0]) if found else 0
