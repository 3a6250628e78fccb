"""Statements read some small tables as a whole: their files are looked up once, beside other statements.

Delta looks for the files of each scan while it plans a statement. Of a version that is new to the session that takes
two jobs, and one more for every scan with another filter, each with a plan of its own: a join with a small table waits
for that longer than for its rows. A relation over files that are known needs no job.

Large tables are left to Delta, which skips files by what it knows of their values; so are reads with a condition, but
of tables of few files: within these Parquet skips.

What is small and read by many branches is read once, and held in memory: to open its files takes longer than what a
branch does with the rows, and so does Delta's look for those that a condition leaves.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.spark.active_session import active
from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs, OpenedTable
from fivm_dbt.engines.spark.java import ARRAY_SEQ, LOGICAL_RELATION, OPTION, java_class
from fivm_dbt.engines.spark.local_rows import frame_of, local_rows, unordered
from fivm_dbt.naming import quote, split_name
from fivm_dbt.refresh.engine import Expected
from fivm_dbt.spark.formats import METADATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024 * 1024
MAX_FILES = 500

FEW_FILES = 8
"""So many are opened faster than Delta finds those of them that a condition leaves."""

HELD_READS = 3
"""So many reads cost more than to fetch the rows, which waits for a job of its own."""

HELD_BYTES = 4 * 1024 * 1024

_DESCRIPTION = "spark.job.description"

_NAME = r"(?:\w+|`(?:[^`]|``)+`)"
_TEXT = re.compile(
    r"'(?:[^'\\]|\\.)*'"
    r'|"(?:[^"\\]|\\.)*"'
    r"|/\*.*?\*/|--[^\n]*"
    rf"|(?P<table>{_NAME}(?:\.{_NAME})*) VERSION AS OF (?P<version>\d+)(?P<after> AS | WHERE )?"
    r"|`(?:[^`]|``)*`",
    re.DOTALL,
)
"""A table at a version, and whether a name or a condition follows; before that, what may have such a text in it."""

_numbers = count(1)


@dataclass(frozen=True)
class _Known:
    """A table as a plan over its files, or over its rows; ``takes_conditions``: no file would be skipped that costs."""

    plan: Any
    takes_conditions: bool


class KnownFiles:
    """The tables that statements of a session will read, each at a version. Without a session it knows none."""

    def __init__(self, session: Any, logs: DeltaLogs) -> None:
        self._session = session
        self._logs = logs
        self._expected: dict[tuple[str, str], Future[_Known | None]] = {}
        self._views: dict[tuple[str, str], str] = {}
        self._others: list[KnownFiles] = []
        """Those of single statements."""

    def expect(self, tables: Sequence[Expected]) -> None:
        """Look up the files of these tables, and forget those of before."""
        if self._session is None:
            return
        for other in self._others:
            other.expect(())
        self._others = []
        for view in self._views.values():
            self._session.catalog.dropTempView(view)
        self._views = {}
        described = self._session.sparkContext.getLocalProperty(_DESCRIPTION)
        self._expected = {
            (table.relation, str(table.version)): _threads().submit(
                _known, self._session, self._logs, table, described
            )
            for table in tables
        }

    def placed_over(self, sql: str, opened: OpenedTable, relation: str, files: Any) -> str:
        """A statement that reads these files of a table, as it was opened: it needs no others of it."""
        plan = relation_over(self._session, opened, files)
        if plan is None:
            return sql
        own = KnownFiles(self._session, self._logs)
        known: Future[_Known | None] = Future()
        known.set_result(_Known(plan, takes_conditions=True))
        own._expected[relation, str(opened.version)] = known
        self._others.append(own)
        return own.placed(sql)

    def placed(self, sql: str) -> str:
        """A statement that reads these tables by their files; anything else in it is as it was."""
        if not self._expected or METADATA in sql:
            return sql  # a view does not have the hidden column of a table
        return _TEXT.sub(lambda found: self._by_files(found) or found.group(), sql)

    def _by_files(self, found: re.Match[str]) -> str | None:
        """What stands for a table in the text, if its files are known."""
        key, after = (found["table"], found["version"]), found["after"] or ""
        if key not in self._expected:
            return None
        known = self._expected[key].result()
        if known is None or (after != " AS " and not known.takes_conditions):
            return None  # Delta may know that the condition skips files
        if key not in self._views:
            self._views[key] = self._as_view(known.plan)
        view = self._views[key]
        name = "" if after == " AS " else f" AS {quote(split_name(key[0])[-1])}"
        return f"{quote(view)}{name}{after}"

    def _as_view(self, plan: Any) -> str:
        name = f"fivm_files_{next(_numbers)}"
        frame_of(self._session, plan).createOrReplaceTempView(name)
        return name


@cache
def _threads() -> ThreadPoolExecutor:
    """A thread of Python has one of the JVM, so they are kept."""
    return ThreadPoolExecutor(4, thread_name_prefix="fivm-files")


def _known(
    session: SparkSession, logs: DeltaLogs, expected: Expected, described: str | None
) -> _Known | None:
    """The table at that version; None where it is large, or anything is not as expected.

    What is read for it counts as read by what is ``described``.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with active(session):
            session.sparkContext.setLocalProperty(_DESCRIPTION, described)
            opened = logs.opened(expected.relation)
            if opened is None or opened.version != expected.version:
                return None
            is_held = expected.reads >= HELD_READS and _bytes(opened) <= HELD_BYTES
            most = FEW_FILES if expected.is_near and not is_held else MAX_FILES
            files = files_of_small(session, opened.snapshot, most)
            if files is None:
                return None
            plan = relation_over(session, opened, files)
            if plan is None:
                return None
            if is_held:
                return _Known(_held(session, plan), takes_conditions=True)
            return _Known(plan, expected.is_restricted or int(files.size()) <= FEW_FILES)
    except (Py4JError, PySparkException) as why:
        logger.debug("Delta looks for the files of %s itself: %s", expected.relation, why)
        return None


def _bytes(opened: OpenedTable) -> int:
    summary = opened.snapshot.checksumOpt()
    return int(summary.get().tableSizeBytes()) if summary.isDefined() else MAX_BYTES + 1


def _held(session: SparkSession, plan: Any) -> Any:
    """The rows of a plan, in memory."""
    rows = unordered(frame_of(session, plan)).localCheckpoint()
    local = local_rows(rows)
    return (rows if local is None else local)._jdf.queryExecution().analyzed()


def relation_over(session: SparkSession, opened: OpenedTable, files: Any) -> Any | None:
    """A table as a relation of these files of it."""
    none = java_class(session, OPTION).empty()
    plan = opened.log.createDataFrame(opened.snapshot, files, False, none).queryExecution().analyzed()
    if plan.nodeName() != "LogicalRelation":
        return None  # columns of CHAR are padded above it
    # With the table's name, by which it is counted what was read of it.
    table = java_class(session, OPTION).apply(opened.table)
    return java_class(session, LOGICAL_RELATION)(plan.relation(), plan.output(), table, False, none)


def files_of_small(session: SparkSession, snapshot: Any, most: int | None = None) -> Any | None:
    """All files of a small table: from what Delta has written beside its last commit, or else from the log."""
    if not snapshot.checksumOpt().isDefined():
        return None
    summary = snapshot.checksumOpt().get()
    many = int(summary.numFiles())
    if many > (MAX_FILES if most is None else most) or int(summary.tableSizeBytes()) > MAX_BYTES:
        return None
    told = _told(summary)
    if told is not None and int(told.size()) == many:
        return told
    return java_class(session, ARRAY_SEQ).unsafeWrapArray(snapshot.allFiles().collect())


def _told(summary: Any) -> Any | None:
    """The files of a table of few, which its last writer has written down, if it has."""
    files = summary.allFiles()
    return files.get() if files.isDefined() else None
