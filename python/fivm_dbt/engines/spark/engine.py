"""The Spark engine runs plans on Spark and Delta, through dbt's connection or a SparkSession."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from fivm_dbt.catalog import Column, KeyRange
from fivm_dbt.engines.spark.delta_lake.file_ranges import file_ranges
from fivm_dbt.engines.spark.delta_lake.known_files import KnownFiles
from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs
from fivm_dbt.engines.spark.delta_lake.sample import sample
from fivm_dbt.engines.spark.delta_lake.vectors import allows_vectors
from fivm_dbt.engines.spark.delta_lake.write import write, write_instead
from fivm_dbt.engines.spark.errors import translated
from fivm_dbt.engines.spark.introspect import Described, describe_relation, view_text
from fivm_dbt.engines.spark.local_rows import (
    FEW,
    apart,
    checkpointed,
    deferred,
    length,
    local_rows,
    observed,
    stored_rows,
    together,
    unordered,
)
from fivm_dbt.engines.spark.metrics import SessionMetrics
from fivm_dbt.engines.spark.own_session import own_session
from fivm_dbt.engines.spark.told_relations import columns_of_query
from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import quote, relation_name, split_name
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.answers import shared_by
from fivm_dbt.refresh.engine import Expected, Metrics, Row, WrittenFile
from fivm_dbt.spark.formats import CHANGE_FEED, FORMAT, RECENT_COMMITS, Commit, Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

_SHARED = Lock()
"""Held while a session that threads share has the settings of one commit."""

_CLOCK = "SELECT CAST(current_date() AS STRING), unix_micros(current_timestamp()), CAST(localtimestamp() AS STRING)"


@dataclass(frozen=True)
class Answer:
    """Column names and rows of a statement."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def values(self, column: str) -> tuple[object, ...]:
        """One column by name; positions differ between versions of the format."""
        position = self.columns.index(column)
        return tuple(row[position] for row in self.rows)


class Execute(Protocol):
    """Runs one statement; its rows are fetched only where ``fetch`` is set."""

    def __call__(self, sql: str, *, fetch: bool) -> Answer: ...


def on_session(session: SparkSession) -> Execute:
    """Statements run by a SparkSession of our own."""

    def execute(sql: str, *, fetch: bool) -> Answer:
        frame = session.sql(sql)
        rows = tuple(tuple(row) for row in frame.collect()) if fetch else ()
        return Answer(tuple(frame.columns), rows)

    return execute


class SparkEngine:
    """An engine for Spark; ``session`` is the one that runs the statements, where it is in this process.

    It serves to measure what was read, to ask Delta's log without a statement, and to cut what is staged from what it
    was computed from.
    """

    name = "spark"

    def __init__(self, execute: Execute, session: SparkSession | None = None) -> None:
        self._execute = execute
        self._metrics = SessionMetrics.of(session)
        self._logs = DeltaLogs.of(session)
        # Spark Connect has no frames that can be cut, and no copies of a session.
        self._is_shared = session is not None and not hasattr(session, "_jsparkSession")
        self._session = session if hasattr(session, "_jsparkSession") else None
        self._files = KnownFiles(self._session, self._logs)
        self.answers = shared_by(None if self._session is None else self._session.sparkContext.applicationId)
        self.fixed_clock: Clock | None = None
        self._local: dict[str, int] = {}
        """Of what is staged, the names of what lies in this process, and how many rows each has."""
        self._cached: set[str] = set()
        """The names of what is staged in Spark's cache."""
        self._counts: dict[str, Row | None] = {}
        """What was counted of deferred queries where they were read, None where they were not yet."""
        self._cannot_delete = False
        """Whether rows could not be deleted: it is not tried again."""

    @staticmethod
    def of_session(session: SparkSession) -> SparkEngine:
        """An engine over a copy of the session."""
        own = own_session(session)
        return SparkEngine(on_session(own), own)

    @property
    def session(self) -> int | None:
        return None if self._session is None else id(self._session)

    @property
    def writes_changes(self) -> bool:
        return self._session is not None

    @property
    def deletes_rows(self) -> bool:
        return self._session is not None and not self._cannot_delete

    def has_vectors(self, relation: str) -> bool:
        opened = self._logs.opened(relation)
        return opened is not None and allows_vectors(opened)

    @property
    def defers(self) -> bool:
        return self._session is not None

    def run(self, sql: str) -> None:
        self._execute(sql, fetch=False)

    def commit(self, sql: str, note: Note) -> None:
        # A commit of somebody else that meets these settings, in a session of Spark Connect that threads share, is
        # never passed over: of one table the numbers grow.
        settings = FORMAT.numbered(note)
        if self._session is None:
            with _SHARED if self._is_shared else nullcontext():
                self._commit_by_statements(sql, settings)
            return
        if note.written is not None:
            if write(self._session, self._logs, self._files, note, note.written):
                return
            self._cannot_delete = self._cannot_delete or bool(note.written.deleted)
        # In a copy of the session no other thread's commit has these settings. The copy has the settings, temporary
        # views and functions of the session, and takes a millisecond to make.
        copy = self._session._jsparkSession.cloneSession()
        for key, value in settings.items():
            copy.conf().set(key, value)
        logger.debug("%s", sql)
        copy.sql(sql)

    def replace(self, relation: str, query: str, properties: Mapping[str, str], statement: str) -> None:
        """Write the rows of ``query`` in the place of those of a table with such columns, and properties with them.

        ``statement`` does the same where a transaction of our own cannot. It takes three times as long.
        """
        if self._session is None or not write_instead(self._session, self._logs, relation, query, properties):
            self.run(statement)

    def _commit_by_statements(self, sql: str, settings: Mapping[str, str]) -> None:
        """The same over a network: dbt gives each thread a connection of its own, which is a session."""
        try:
            for key, value in settings.items():
                self.run(f"SET {quote(key)} = {quote(value)}")
            self.run(sql)
        finally:
            for key in settings:
                self.run(f"RESET {quote(key)}")

    def query(self, sql: str) -> Sequence[Row]:
        return translated(lambda: self._execute(sql, fetch=True)).rows

    def describe(self, sql: str) -> tuple[Column, ...]:
        if self._session is not None:
            columns = columns_of_query(self._session, sql)
            if columns is not None:
                return columns
        answer = self._execute(f"DESCRIBE QUERY {sql}", fetch=True)
        return tuple(Column.of(str(row[0]), str(row[1])) for row in answer.rows)

    def described(self, relation: str) -> Described | None:
        """What a relation is, None where it does not exist."""
        return self._logs.described(relation) or describe_relation(self._execute, relation)

    def commits(self, relation: str, since: int | None) -> Sequence[Commit]:
        known = self._logs.commits(relation, since)
        if known is not None:
            return known
        if since is None:
            return self._history(relation, 1)
        found = self._history(relation, RECENT_COMMITS)
        newest = found[0].version
        if newest <= since:
            return found[:1]
        if found[-1].version > since:
            found = self._history(relation, newest - since + 1)
        return tuple(commit for commit in found if commit.version >= since)

    def _history(self, relation: str, count: int) -> tuple[Commit, ...]:
        return tuple(FORMAT.commit(*row) for row in self._asked(FORMAT.history(relation, count)))

    def _asked(self, question: Question) -> Iterable[Row]:
        answer = translated(lambda: self._execute(question.sql, fetch=True))
        return zip(*(answer.values(column) for column in question.columns), strict=True)

    def newest(self, relations: Iterable[str]) -> tuple[Commit, ...] | None:
        """Their newest commits, None where that is not known in a moment."""
        return self._logs.newest(relations)

    def has_change_feed(self, relation: str) -> bool:
        known = self._logs.has_change_feed(relation)
        if known is not None:
            return known
        key, _ = CHANGE_FEED
        answer = translated(lambda: self._execute(f"SHOW TBLPROPERTIES {relation} ('{key}')", fetch=True))
        return any(str(row[-1]).lower() == "true" for row in answer.rows)

    def stage(self, name: str, sql: str) -> None:
        if self._session is not None:
            self._stage_cut(self._session, name, sql)
            return
        cache = f"CACHE TABLE {quote(name)} AS {sql}"
        try:
            translated(lambda: self._execute(cache, fetch=False))
        except Exception as error:
            if "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS" not in str(error):
                raise
            # A run that was cut off has left a view of this name in the session.
            self.unstage(name)
            translated(lambda: self._execute(cache, fetch=False))

    def _stage_cut(self, session: SparkSession, name: str, sql: str) -> None:
        """Stage rows that do not know what they were computed from.

        What CACHE TABLE AS makes is a view, whose text Spark analyses again at each place where it is read, with all
        staged views that it reads, and theirs: the key sets of a pattern are ten deep, and their text is long. Few rows
        are kept in the plans that read them.
        """

        def stage() -> None:
            rows = self._cut(session.sql(self._files.placed(sql)))
            local = local_rows(rows)
            if local is None and (stored := stored_rows(rows)) is not None:
                stored.createOrReplaceTempView(quote(name))
            else:
                self._keep(name, rows if local is None else local, is_local=local is not None)

        translated(stage)

    def _keep(self, name: str, rows: DataFrame, *, is_local: bool) -> None:
        """Rows that are computed from others each time are cached, if they are many: so Spark knows their true size."""
        rows.createOrReplaceTempView(quote(name))
        if is_local:
            self._local[name] = length(rows)
        else:
            self._cached.add(name)
            self._execute(f"CACHE TABLE {quote(name)}", fetch=False)

    def stage_all(self, staged: Sequence[tuple[str, str]]) -> None:
        session = self._session
        if session is None:
            for name, sql in staged:
                self.stage(name, sql)
            return

        def stage() -> None:
            rows = self._cut(together(session, [self._files.placed(sql) for _, sql in staged]))
            local = local_rows(rows)
            parts = apart(rows if local is None else local, len(staged))
            for (name, _), part in zip(staged, parts, strict=True):
                self._keep(name, part, is_local=local is not None)

        translated(stage)

    def _cut(self, frame: DataFrame) -> DataFrame:
        """The rows of a query, which do not know what they were computed from."""
        every = unordered(frame)
        rows = checkpointed(every)
        for name, counts in self._counts.items():
            if counts is None:
                self._counts[name] = observed(every, name)
        return rows

    def defer(self, name: str, sql: str, counts: Sequence[str]) -> None:
        session = self._session
        assert session is not None
        frame = translated(lambda: deferred(session.sql(self._files.placed(sql)), name, counts))
        frame.createOrReplaceTempView(quote(name))
        if counts:
            self._counts[name] = None

    def counted(self, name: str) -> Row | None:
        return self._counts.pop(name)

    def expect(self, tables: Sequence[Expected]) -> None:
        self._files.expect(tables)

    def staged_rows(self, name: str, sql: str) -> Sequence[Row] | None:
        if self._session is None or self._local.get(name, FEW + 1) > FEW:
            return None
        return [tuple(row) for row in self._session.sql(sql).collect()]

    def unstage(self, name: str) -> None:
        self._counts.pop(name, None)
        self._local.pop(name, None)
        if self._session is not None and name not in self._cached:
            # Spark would look for the plan, which may be long, in all that is cached.
            self._session._jsparkSession.sessionState().catalog().dropTempView(name)
            return
        # Dropping a temporary view takes its rows out of the cache too.
        self._cached.discard(name)
        self._execute(f"DROP VIEW IF EXISTS {quote(name)}", fetch=False)

    def compact(self, sql: str) -> None:
        self.run(sql)

    def view_property(self, relation: str, key: str) -> str | None:
        """A property of a view, None where it has none of this name or is no view."""
        known = self._logs.view_property(relation, key)
        if known is not None:
            return known or None
        described = describe_relation(self._execute, relation)
        return dict(described.properties).get(key) if described is not None and described.is_view else None

    def setting(self, key: str) -> str:
        """What a setting of the session is that runs the statements."""
        if self._session is not None:
            return str(self._session.conf.get(key))
        return str(self.query(f"SET {key}")[0][-1])

    def files(self, relation: str, columns: Sequence[str]) -> Sequence[Mapping[str, KeyRange]]:
        opened = self._logs.opened(relation) if self._session is not None else None
        return () if self._session is None or opened is None else file_ranges(self._session, opened, columns)

    def sample(self, name: str, relation: str) -> float | None:
        opened = self._logs.opened(relation) if self._session is not None else None
        if self._session is None or opened is None:
            return None
        return sample(self._session, opened, name)

    def size(self, relation: str) -> int | None:
        known = self._logs.size(relation)
        if known is not None:
            return known
        sizes = [size for (size,) in self._asked(FORMAT.size(relation))]
        return int(str(sizes[0])) if sizes and sizes[0] is not None else None

    def written(self, relation: str) -> Sequence[WrittenFile] | None:
        return self._logs.written(relation)

    def exists(self, relation: str) -> bool:
        known = self._logs.exists(relation)
        if known is not None:
            return known
        *schema, table = split_name(relation)
        place = f" IN {relation_name(*schema)}" if schema else ""
        try:
            answer = self._execute(f"SHOW TABLES{place}", fetch=True)
        except Exception as error:
            if "SCHEMA_NOT_FOUND" in str(error):
                return False
            raise
        shown = zip(answer.values("tableName"), answer.values("isTemporary"), strict=True)
        return any(str(name).lower() == table and not temporary for name, temporary in shown)

    def is_view_of(self, relation: str, query: str) -> bool:
        known = self._logs.is_view_of(relation, query)
        if known is not None:
            return known
        text = view_text(self._execute, relation)
        return text is not None and text.split() == query.split()

    def clock(self) -> Clock:
        """The time that was set, or Spark's; of one query all functions of the clock have the same moment."""
        if self.fixed_clock is not None:
            return self.fixed_clock
        date, micros, local = self.query(_CLOCK)[0]
        instant = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=int(str(micros)))
        return Clock(str(date), instant.isoformat(sep=" "), str(local))

    def start_measuring(self, tag: str) -> None:
        self._metrics.start(tag)

    def measured(self, tag: str) -> Metrics:
        return self._metrics.read(tag)

    def stop_measuring(self) -> None:
        """Leave the thread as it was found, also after an error."""
        self._metrics.stop()
