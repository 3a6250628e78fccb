"""One refresh sees the engine through a recorder: every statement is recorded, checked before it runs, and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from fivm_dbt.catalog import Column
from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.head import Note, Written
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.engine import Engine, Expected, Metrics, Row, WrittenFile
from fivm_dbt.spark.formats import Commit
from fivm_dbt.spark.inserts import inserted
from fivm_dbt.spark.pieces import Condition, Query, Statement, any_row, by_row

_numbers = count(1)


@dataclass(frozen=True)
class OwnRows:
    """What an engine writes itself in the place of an INSERT: the rows of a ``query``, and of no other table.

    With ``tells_changes`` it has the rows of the change feed too, which else has all that went and came. ``instead``
    are the rows of the table that are replaced, where the INSERT's condition names others that come. So are those at
    the places that are staged as ``deleted``, in a table where an earlier commit ``allows_vectors``.
    """

    query: Query
    tells_changes: bool = True
    instead: Condition | None = None
    deleted: tuple[str, ...] = ()
    allows_vectors: bool = False


class Recorder:
    """Passes everything to an engine; keeps the statements' text and the names that are staged."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        progress: Callable[[str], None],
        make_way: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine
        self._staged: list[str] = []
        # Unique among the threads and runs of this process, so that figures are attributed to one refresh.
        self._tag = f"fivm {plan.relation} {next(_numbers)}"
        self.statements: list[str] = []
        self._metrics: Metrics | None = None
        self.progress = progress
        self.make_way = make_way
        """Drops what another materialization has left under the model's name; None where there is no such thing."""
        engine.start_measuring(self._tag)

    @property
    def name(self) -> str:
        return self._engine.name

    def clear_the_way(self) -> None:
        """Drop what another materialization has left under the model's name, the first time."""
        if self.make_way is not None:
            self.make_way()
            self.make_way = None

    def run(self, sql: str | Statement) -> None:
        self._engine.run(self._record(sql))

    @property
    def writes_changes(self) -> bool:
        return self._engine.writes_changes

    @property
    def deletes_rows(self) -> bool:
        return self._engine.deletes_rows

    def has_vectors(self, relation: str) -> bool:
        return self._engine.has_vectors(relation)

    def commit(
        self,
        sql: Statement,
        note: Note,
        after: int | None = None,
        own: OwnRows | None = None,
        *,
        reads_replaced: bool = False,
    ) -> None:
        """Commit with a note. What an INSERT adds goes into the version ``after`` of its table, if that is given.

        So does what it writes in the place of other rows, where it reads no rows of the table but those
        (``reads_replaced``).
        """
        insert = None if after is None else inserted(sql, may_replace=reads_replaced)
        if after is None or insert is None:
            self._engine.commit(self._record(sql), note)
            return
        text = self._record(insert.text)
        query = insert.query if own is None else own.query.sql(dialect="spark", copy=False)
        written = Written(query, after, insert.instead)
        if own is not None:
            where = insert.instead if own.instead is None else own.instead.sql(dialect="spark", copy=False)
            written = Written(
                query,
                after,
                where,
                tells_changes=own.tells_changes,
                deleted=own.deleted,
                allows_vectors=own.allows_vectors,
            )
        self._engine.commit(text, replace(note, written=written))

    def query(self, sql: str | Statement) -> Sequence[Row]:
        return self._engine.query(self._record(sql))

    def told(self, query: Query, versions: Sequence[Commit]) -> Sequence[Row]:
        """The answer of a query that reads these versions alone: a statement, if nobody in this process has asked."""
        return self._engine.answers.of(query.sql(dialect="spark", copy=False), versions, self.query)

    def expect(self, tables: Sequence[Expected]) -> None:
        self._engine.expect(tables)

    def stage(self, name: str, sql: str | Statement) -> None:
        text = self._record(sql, f"CACHE TABLE {name} AS ")
        self._staged.append(name)
        self._engine.stage(name, text)

    def stage_all(self, staged: Sequence[tuple[str, Statement]]) -> None:
        """Stage queries that do not read each other."""
        texts = [(name, self._record(query, f"CACHE TABLE {name} AS ")) for name, query in staged]
        if len(texts) == 1:
            self._engine.stage(*texts[0])
        elif texts:
            self._engine.stage_all(texts)
        self._staged += [name for name, _ in texts]

    @property
    def defers(self) -> bool:
        return self._engine.defers

    def defer(self, name: str, query: Query, counts: Sequence[Statement]) -> None:
        """Have a query run where it is read, with its aggregates ``counts``."""
        text = self._record(query, f"CREATE TEMPORARY VIEW {name} AS ")
        self._staged.append(name)
        self._engine.defer(name, text, [c.sql(dialect="spark") for c in counts])

    def counted(self, name: str) -> Row | None:
        return self._engine.counted(name)

    def added_up(self, name: str, query: Query) -> Sequence[Row]:
        """The answer of an aggregate of a staged result, or parts of it, to be added up: of few rows one for each."""
        rows = self._engine.staged_rows(name, by_row(query).sql(dialect="spark"))
        return self.query(query) if rows is None else rows

    def has_rows(self, name: str) -> bool:
        """Whether a staged result has any."""
        one = any_row(name)
        known = self._engine.staged_rows(name, one.sql(dialect="spark"))
        return bool(self.query(one) if known is None else known)

    def unstage(self, name: str) -> None:
        self._engine.unstage(name)
        self._staged.remove(name)

    def unstage_all(self) -> None:
        """Forget what was staged, last first: a staged result may read an earlier one."""
        for name in reversed(list(self._staged)):
            self.unstage(name)
        self._engine.expect(())

    def describe(self, sql: str) -> tuple[Column, ...]:
        return self._engine.describe(sql)

    def commits(self, relation: str, since: int | None) -> Sequence[Commit]:
        return self._engine.commits(relation, since)

    def has_change_feed(self, relation: str) -> bool:
        return self._engine.has_change_feed(relation)

    def compact(self, sql: str | Statement) -> None:
        self._engine.compact(self._record(sql))

    def size(self, relation: str) -> int | None:
        return self._engine.size(relation)

    def written(self, relation: str) -> Sequence[WrittenFile] | None:
        return self._engine.written(relation)

    def exists(self, relation: str) -> bool:
        return self._engine.exists(relation)

    def is_view_of(self, relation: str, query: str) -> bool:
        return self._engine.is_view_of(relation, query)

    def clock(self) -> Clock:
        return self._engine.clock()

    def measured(self) -> Metrics:
        """What the statements up to the first call have read."""
        if self._metrics is None:
            self._metrics = self._engine.measured(self._tag)
        return self._metrics

    def _record(self, sql: str | Statement, prefix: str = "") -> str:
        text = sql if isinstance(sql, str) else sql.sql(dialect="spark", copy=False)
        self.statements.append(prefix + text)
        return text
