"""Reads fill statements with copies of the relations that they name, and count the rows of these."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict

import duckdb
from sqlglot import exp

from fivm_dbt.engines.duckdb.literals import Cut, cut_literals
from fivm_dbt.engines.duckdb.sql import Slot, Statement, transpile
from fivm_dbt.engines.duckdb.tables import TableStore
from fivm_dbt.naming import canonical
from fivm_dbt.refresh.engine import Metrics, Row

_MANY = 10_000
_TRANSPILED: dict[tuple[str, frozenset[tuple[str, str]]], Statement] = {}
"""Statements by their text and the views that there are: engines of one process often run the same."""

_ONCE = "staged once "
_numbers = itertools.count(1)


class Reads:
    """What statements read: versions of tables, views, and what is staged."""

    def __init__(self, tables: TableStore, *, is_counting: bool) -> None:
        self.tables = tables
        self.connection = tables.connection
        self.is_counting = is_counting
        self.views: dict[str, exp.Query] = {}
        self.view_texts: dict[str, str] = {}
        self.staged: dict[str, str] = {}
        self._once: dict[str, str] = {}
        self._results: dict[str, list[Row]] = {}
        self._local = threading.local()
        self._scans: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def statement(self, sql: str) -> tuple[Statement, Cut]:
        cut = cut_literals(sql)
        key = (cut.template, frozenset(self.view_texts.items()))
        statement = _TRANSPILED.get(key)  # which another thread's engine may clear
        if statement is None:
            if len(_TRANSPILED) >= _MANY:
                _TRANSPILED.clear()
            statement = _TRANSPILED[key] = transpile(cut.template, self.views)
        return statement, cut

    def _runs_anew(self, statement: Statement) -> bool:
        """Whether it is run each time: rows are counted, or it reads what may be staged anew under the same name."""
        staged = (self.staged.get(slot.relation) for slot in statement.slots if slot.first is None)
        return self.is_counting or any(c is not None and not c.startswith(_ONCE) for c in staged)

    def forget(self) -> None:
        """Versions restart with a table, and so do the names of its copies."""
        self._results.clear()
        self._once.clear()

    def exists(self, name: str) -> bool:
        return name in self.tables or name in self.views

    def filled(self, sql: str) -> str:
        """A query in DuckDB's SQL, over the copies that it reads. It is not counted as a read of a refresh."""
        statement, cut = self.statement(sql)
        copies = {slot.token: self._copy(slot, cut) for slot in statement.slots}
        return cut.fill(statement.fill(statement.body, copies))

    def text(self, statement: Statement, cut: Cut) -> str:
        """The query of a statement in DuckDB's SQL, counted as a read."""
        return cut.fill(statement.fill(statement.body, self.copies(statement, cut)))

    def rows(self, statement: Statement, cut: Cut) -> list[Row]:
        """The rows of a query."""
        text = self.text(statement, cut)
        if self._runs_anew(statement):
            return _rows(self.connection.execute(text))
        # A committed version never changes: the same text over the same copies has the same rows.
        if text not in self._results:
            self._results[text] = _rows(self.connection.execute(text))
        return self._results[text]

    def stage(self, name: str, sql: str) -> None:
        """Keep the rows of a query under a name."""
        statement, cut = self.statement(sql)
        text = self.text(statement, cut)
        if self._runs_anew(statement):
            copy = f"staged {name}"
            self.tables.create_as(copy, text)
        else:
            if text not in self._once:  # several models stage the same change of an input
                copy = f"{_ONCE}{next(_numbers)}"
                self.tables.create_as(copy, text)
                self._once[text] = copy
            copy = self._once[text]
        self.staged[canonical(name)] = copy

    def copies(self, statement: Statement, cut: Cut) -> dict[str, str]:
        """The DuckDB tables for the slots of a statement, whose rows are counted."""
        copies = {slot.token: self._copy(slot, cut) for slot in statement.slots}
        for slot in statement.slots:
            self.count(slot.counted_as, copies[slot.token], slot.where, cut)
        return copies

    def count(self, relation: str, copy: str, where: str, cut: Cut) -> None:
        """Count the rows of a copy, or those that meet a condition, as read from a relation."""
        tag = getattr(self._local, "tag", None)
        if tag is None or not self.is_counting:
            return
        if where:
            query = f'SELECT COUNT(*) FROM "{copy}" WHERE {cut.fill(where)}'
            ((rows,),) = self.connection.execute(query).fetchall()
        else:
            rows = self.tables.rows(copy)
        self._scans[tag][relation] += int(rows)

    def _copy(self, slot: Slot, cut: Cut) -> str:
        if slot.pinned is not None:
            return self.tables.copy_of(slot.relation, slot.pinned)
        if slot.first is None:
            return self.staged.get(slot.relation) or self.tables.copy_of(slot.relation, None)
        if not slot.is_changes:
            return self.tables.copy_of(slot.relation, cut.numbers[slot.first])
        last = cut.numbers[slot.last] if slot.last is not None else -1
        return self.tables.feed(slot.relation, cut.numbers[slot.first], last if last >= 0 else None)

    def start_measuring(self, tag: str) -> None:
        self._local.tag = tag
        self._scans[tag] = Counter()

    def measured(self, tag: str) -> Metrics:
        """An upper bound: the rows of every table or staged result that a statement names, each time.

        They are those in the partitions that it names by literals, as Delta reads, or else all. So are the rows of the
        table that a MERGE writes to.
        """
        scans = self._scans.get(tag, Counter())
        read = sum(scans.values()) if self.is_counting else None
        return Metrics(rows_read=read, scans=tuple(sorted(scans.items())))


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
