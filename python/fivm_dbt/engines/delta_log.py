"""What Delta's log and Spark's catalog know about a table, asked as objects in the JVM.

That takes milliseconds, where a statement takes tens to hundreds of them: DESCRIBE HISTORY starts two jobs. The answers
are those of the statements, timestamps to the microsecond, because what one way has recorded is compared with what the
other one says.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from fivm_dbt.engines.commits import RECENT_COMMITS, commit_of
from fivm_dbt.engines.jars import SESSION_CONFIG
from fivm_dbt.refresh.engine import Commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_CATALOG = "spark_catalog"
_CATALOG_CLASS = f"spark.sql.catalog.{_CATALOG}"
_FEED = "delta.enableChangeDataFeed"
_TIMES_IN_COMMITS = "delta.enableInCommitTimestamps"
_EPOCH = datetime.fromtimestamp(0, timezone.utc)

T = TypeVar("T")


@dataclass(frozen=True)
class OpenedTable:
    """A table of the catalog with its log and its newest snapshot, all of them objects of the JVM."""

    table: Any
    log: Any
    snapshot: Any


@dataclass
class _File:
    """The file of a commit: when it was written, and what it tells of the commit, once that was read."""

    milliseconds: int
    told: dict[str, Any] | None = None


class DeltaLogs:
    """Tables of a session's own catalog. Every answer is None where something is not as expected: the statement then
    tells, or says what is wrong."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._files: dict[tuple[str, str], dict[int, _File]] = defaultdict(dict)
        """What has been read of commits, which never changes, by the place and the id of their table."""

    @staticmethod
    def of(session: SparkSession | None) -> DeltaLogs:
        """Of a classic session whose catalog is Delta's own; of any other and of none, logs that know nothing."""
        is_known = (
            session is not None
            and hasattr(session, "_jsparkSession")
            and session.conf.get(_CATALOG_CLASS, None) == SESSION_CONFIG[_CATALOG_CLASS]
        )
        return DeltaLogs(session if is_known else None)

    def commits(self, relation: str, since: int | None) -> tuple[Commit, ...] | None:
        """As :meth:`fivm_dbt.refresh.engine.Versions.commits`."""
        return self._asked(relation, lambda table: self._commits(table, since))

    def has_change_feed(self, relation: str) -> bool | None:
        def ask(table: Any) -> bool | None:
            log = self._log(table)
            if log is None:
                return None
            feed = log.snapshot.metadata().configuration().get(_FEED)
            return bool(feed.isDefined() and str(feed.get()).lower() == "true")

        return self._asked(relation, ask)

    def size(self, relation: str) -> int | None:
        def ask(table: Any) -> int | None:
            log = self._log(table)
            return None if log is None else int(log.snapshot.sizeInBytes())

        return self._asked(relation, ask)

    def exists(self, relation: str) -> bool | None:
        return self._asked(relation, lambda table: bool(self._catalog.tableExists(table)))

    def is_view_of(self, relation: str, query: str) -> bool | None:
        def ask(table: Any) -> bool:
            if not self._catalog.tableExists(table):
                return False
            known = self._catalog.getTableMetadata(table)
            is_view = known.tableType().name() == "VIEW" and known.viewText().isDefined()
            return is_view and str(known.viewText().get()).split() == query.split()

        return self._asked(relation, ask)

    @property
    def _catalog(self) -> Any:
        return self._session._jsparkSession.sessionState().catalog()

    def _asked(self, relation: str, ask: Callable[[Any], T | None]) -> T | None:
        if self._session is None:
            return None
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            table = self._identifier(relation)
            return None if table is None else ask(table)
        except (Py4JError, PySparkException) as why:
            logger.debug("statements tell about %s: %s", relation, why)
            return None

    def _identifier(self, relation: str) -> Any | None:
        """The table of this name in Spark's own catalog, None for a name that may mean something else."""
        state = self._session._jsparkSession.sessionState()
        if state.catalogManager().currentCatalog().name() != _CATALOG:
            return None
        table = state.sqlParser().parseTableIdentifier(relation)
        return None if state.catalog().isTempView(table) else table

    def opened(self, relation: str) -> OpenedTable | None:
        return self._asked(relation, self._log)

    def _log(self, table: Any) -> OpenedTable | None:
        """A Delta table as it is now, None of anything else."""
        known = self._catalog.getTableMetadata(table)
        if not known.provider().isDefined() or str(known.provider().get()).lower() != "delta":
            return None
        session = self._session
        found = session._jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(
            session._jsparkSession, table
        )
        return OpenedTable(known, found._1(), found._2()) if found._2().version() >= 0 else None

    def _commits(self, table: Any, since: int | None) -> tuple[Commit, ...] | None:
        opened = self._log(table)
        if opened is None:
            return None
        log, snapshot = opened.log, opened.snapshot
        newest = int(snapshot.version())
        # As many as the statement reads: a commit with an older time than the one before it is dated after that one.
        count = 1 if since is None else max(RECENT_COMMITS, newest - since + 1)
        wanted = newest if since is None else min(newest, since)
        times = snapshot.metadata().configuration().get(_TIMES_IN_COMMITS)
        if times.isDefined() and str(times.get()).lower() == "true":
            return self._history(log, count, wanted)
        return self._read_files(log, snapshot, range(max(0, newest + 1 - count), newest + 1), wanted)

    def _history(self, log: Any, count: int, wanted: int) -> tuple[Commit, ...]:
        """The last commits as Delta itself reads them, in a job: some times are in the commits, and some are not."""
        jvm = self._session._jvm
        found = log.history().getHistory(jvm.scala.Option.apply(count), jvm.scala.Option.empty())
        told = (self._told(found.apply(position)) for position in range(found.size()))
        return tuple(_commit(entry, entry["timestamp"]) for entry in told if entry["version"] >= wanted)

    def _read_files(self, log: Any, snapshot: Any, versions: range, wanted: int) -> tuple[Commit, ...] | None:
        """Newest first. A commit is dated by its file, and none before the one that it follows."""
        delta = self._session._jvm.org.apache.spark.sql.delta
        files = delta.util.DeltaCommitFileProvider.apply(snapshot)
        configuration = log.newDeltaHadoopConf()
        directory = log.logPath().getFileSystem(configuration)
        known = self._files[log.logPath().toString(), snapshot.metadata().id()]
        found: list[Commit] = []
        time = -1
        for version in versions:
            if version not in known:
                path = files.deltaFile(version)
                if not directory.exists(path):
                    continue
                known[version] = _File(int(directory.getFileStatus(path).getModificationTime()))
            file = known[version]
            time = max(time + 1, file.milliseconds)
            if version < wanted:
                continue
            if file.told is None:
                path = files.deltaFile(version)
                commit = delta.DeltaHistoryManager.getCommitInfoOpt(log.store(), path, configuration)
                if not commit.isDefined():
                    return None
                file.told = self._told(delta.DeltaHistory.fromCommitInfo(commit.get()))
            found.append(_commit(file.told, time))
        return tuple(reversed(found)) or None

    def _told(self, history: Any) -> dict[str, Any]:
        mapper = self._session._jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper()
        told: dict[str, Any] = json.loads(mapper.writeValueAsString(history))
        return told


def _commit(told: dict[str, Any], milliseconds: int) -> Commit:
    time = _EPOCH + timedelta(milliseconds=milliseconds)
    metrics, parameters = told.get("operationMetrics"), told.get("operationParameters")
    note = told.get("userMetadata")
    return commit_of(told["version"], time, told["operation"], metrics, parameters, note)
