"""Delta's log and Spark's catalog are objects in the JVM that know a table.

That takes milliseconds, where a statement takes tens to hundreds of them: DESCRIBE HISTORY starts two jobs. The answers
are those of the statements, timestamps to the microsecond, because what one way has recorded is compared with what the
other one says.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from fivm_dbt.engines.spark.delta_lake.names import COMMIT_FILES, HISTORIES, HISTORY, LOG, SESSION_CONFIG
from fivm_dbt.engines.spark.java import OPTION, java_class, java_method, told
from fivm_dbt.engines.spark.told_relations import told_table, told_view
from fivm_dbt.naming import ROOT_PROPERTY
from fivm_dbt.refresh.engine import WrittenFile
from fivm_dbt.spark.formats import CHANGE_FEED, FORMAT, RECENT_COMMITS, Commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fivm_dbt.engines.spark.introspect import Described

logger = logging.getLogger(__name__)

_CATALOG = "spark_catalog"
_CATALOG_CLASS = f"spark.sql.catalog.{_CATALOG}"
_FEED, _ = CHANGE_FEED
_TIMES_IN_COMMITS = "delta.enableInCommitTimestamps"
_EPOCH = datetime.fromtimestamp(0, timezone.utc)

T = TypeVar("T")


@dataclass(frozen=True)
class OpenedTable:
    """A table of the catalog with its newest snapshot, which are objects of the JVM."""

    session: Any
    table: Any
    snapshot: Any
    version: int

    @property
    def log(self) -> Any:
        return self.snapshot.deltaLog()

    @cached_property
    def metadata(self) -> Any:
        return self.snapshot.metadata()

    @cached_property
    def _properties(self) -> dict[str, str]:
        found: dict[str, str] = told(self.session, self.metadata.configuration())
        return found

    @property
    def has_feed(self) -> bool:
        """Whether its changes are recorded."""
        return self.has(_FEED)

    def has(self, key: str) -> bool:
        """Whether a property of the table is true."""
        return str(self._properties.get(key)).lower() == "true"


@dataclass
class _File:
    """The file of a commit: when it was written, and what it tells of the commit, once that was read."""

    milliseconds: int
    told: dict[str, Any] | None = None


@lru_cache(maxsize=1000)
def _commit_files(place: str, table: str) -> dict[int, _File]:
    """What has been read of the commits of a table, by version: they never change, and models share it."""
    return {}


class DeltaLogs:
    """Tables of a session's own catalog. Every answer is None where something is not as expected: the statement then
    tells, or says what is wrong."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._looked_at: dict[str, OpenedTable] = {}
        """The table of each name as it was when its commits were asked for, until its change feed is."""
        self._parsed: dict[str, Any] = {}
        """What each name means."""

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
        return self._asked(relation, lambda table: self._commits(relation, table, since))

    def newest(self, relations: Iterable[str]) -> tuple[Commit, ...] | None:
        """The newest commits of some tables, of a maintained model that of its states; None where one is neither."""
        found: list[Commit] = []
        for name in relations:
            states = self.view_property(name, ROOT_PROPERTY)
            commits = self.commits(states or name, None)
            if not commits:
                return None
            found.append(commits[0])
        return tuple(found)

    def has_change_feed(self, relation: str) -> bool | None:
        def ask(table: Any) -> bool | None:
            opened = self._looked_at.pop(relation, None) or self._log(table)
            if opened is None:
                return None
            return opened.has_feed

        return self._asked(relation, ask)

    def size(self, relation: str) -> int | None:
        def ask(table: Any) -> int | None:
            log = self._log(table)
            return None if log is None else int(log.snapshot.sizeInBytes())

        return self._asked(relation, ask)

    def written(self, relation: str) -> tuple[WrittenFile, ...] | None:
        """As :meth:`fivm_dbt.refresh.engine.Engine.written`."""

        def ask(table: Any) -> tuple[WrittenFile, ...] | None:
            opened = self._log(table)
            return None if opened is None else _Log(opened).files(opened.version)

        return self._asked(relation, ask)

    def exists(self, relation: str) -> bool | None:
        return self._asked(relation, lambda table: bool(self._catalog.tableExists(table)))

    def described(self, relation: str) -> Described | None:
        """A Delta table or a view as :func:`fivm_dbt.engines.spark.introspect.describe_relation` says it."""

        def ask(table: Any) -> Described | None:
            known = self._catalog.getTableMetadata(table)
            if _is_delta(known):
                opened = self._opened(known, table)
                return None if opened is None else self._described(opened)
            return told_view(told(self._session, known)) if _is_view(known) else None

        return self._asked(relation, ask)

    def is_view_of(self, relation: str, query: str) -> bool | None:
        def ask(table: Any) -> bool:
            view = self._view(table)
            text = None if view is None else view.viewText()
            return text is not None and text.isDefined() and str(text.get()).split() == query.split()

        return self._asked(relation, ask)

    def view_property(self, relation: str, key: str) -> str | None:
        """A property of a view, '' where it has none of this name or is no view."""

        def ask(table: Any) -> str:
            view = self._view(table)
            found = None if view is None else view.properties().get(key)
            return str(found.get()) if found is not None and found.isDefined() else ""

        return self._asked(relation, ask)

    def _view(self, table: Any) -> Any | None:
        """What the catalog has of a view, None where there is none."""
        if not self._catalog.tableExists(table):
            return None
        known = self._catalog.getTableMetadata(table)
        return known if _is_view(known) else None

    @cached_property
    def _state(self) -> Any:
        """Of one session it is one object, and so are the catalog and the parser in it."""
        return self._session._jsparkSession.sessionState()

    @cached_property
    def _catalog(self) -> Any:
        return self._state.catalog()

    @cached_property
    def _parser(self) -> Any:
        return self._state.sqlParser()

    @cached_property
    def _catalogs(self) -> Any:
        return self._state.catalogManager()

    def _asked(self, relation: str, ask: Callable[[Any], T | None]) -> T | None:
        if self._session is None:
            return None
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            table = self._identifier(relation)
            return None if table is None else ask(table)
        except (Py4JError, PySparkException, KeyError, TypeError) as why:
            logger.debug("statements tell about %s: %s", relation, why)
            return None

    def _identifier(self, relation: str) -> Any | None:
        """The table of this name in Spark's own catalog, None for a name that may mean something else."""
        if self._catalogs.currentCatalog().name() != _CATALOG:
            return None
        if relation not in self._parsed:
            self._parsed[relation] = self._parser.parseTableIdentifier(relation)
        table = self._parsed[relation]
        return None if self._catalog.isTempView(table) else table

    def opened(self, relation: str) -> OpenedTable | None:
        return self._asked(relation, self._log)

    def _log(self, table: Any) -> OpenedTable | None:
        """A Delta table as it is now, None of anything else."""
        known = self._catalog.getTableMetadata(table)
        return self._opened(known, table) if _is_delta(known) else None

    def _opened(self, known: Any, table: Any) -> OpenedTable | None:
        look = java_method(self._session, LOG, "forTableWithSnapshot")
        snapshot = look(self._session._jsparkSession, table)._2()
        version = int(snapshot.version())
        return OpenedTable(self._session, known, snapshot, version) if version >= 0 else None

    def _described(self, opened: OpenedTable) -> Described:
        metadata = told(self._session, opened.metadata)
        properties = told(self._session, opened.snapshot.getProperties())
        return told_table(json.loads(metadata["schemaString"]), properties, metadata.get("description"))

    def _commits(self, relation: str, table: Any, since: int | None) -> tuple[Commit, ...] | None:
        opened = self._log(table)
        if opened is None:
            return None
        self._looked_at[relation] = opened
        newest = opened.version
        # As many as the statement reads: a commit with an older time than the one before it is dated after that one.
        count = 1 if since is None else max(RECENT_COMMITS, newest - since + 1)
        wanted = newest if since is None else min(newest, since)
        if opened.has(_TIMES_IN_COMMITS):
            return self._history(opened.log, count, wanted)
        return self._read_files(opened, range(max(0, newest + 1 - count), newest + 1), wanted)

    def _history(self, log: Any, count: int, wanted: int) -> tuple[Commit, ...]:
        """The last commits as Delta itself reads them, in a job: some times are in the commits, and some are not."""
        options = java_class(self._session, OPTION)
        found = log.history().getHistory(options.apply(count), options.empty())
        entries = (told(self._session, found.apply(position)) for position in range(found.size()))
        return tuple(_commit(entry, entry["timestamp"]) for entry in entries if entry["version"] >= wanted)

    def _read_files(self, opened: OpenedTable, versions: range, wanted: int) -> tuple[Commit, ...] | None:
        """Newest first. A commit is dated by its file, and none before the one that it follows."""
        known = _commit_files(str(opened.snapshot.path()), str(opened.metadata.id()))
        log = _Log(opened)
        found: list[Commit] = []
        time = -1
        for version in versions:
            if version not in known:
                written = log.written(version)
                if written is None:
                    continue
                known[version] = _File(written)
            file = known[version]
            time = max(time + 1, file.milliseconds)
            if version < wanted:
                continue
            if file.told is None:
                file.told = log.read(version)
                if file.told is None:
                    return None
            found.append(_commit(file.told, time))
        return tuple(reversed(found)) or None


class _Log:
    """The files of a table's log. What reads them is made only for files that are new."""

    def __init__(self, opened: OpenedTable) -> None:
        self._session = opened.session
        self._snapshot = opened.snapshot

    @cached_property
    def _log(self) -> Any:
        return self._snapshot.deltaLog()

    @cached_property
    def _configuration(self) -> Any:
        return self._log.newDeltaHadoopConf()

    @cached_property
    def _path_of(self) -> Any:
        return java_method(self._session, COMMIT_FILES, "apply")(self._snapshot).deltaFile

    def written(self, version: int) -> int | None:
        """When the file of a commit was written, in milliseconds; None where it is gone."""
        path = self._path_of(version)
        directory = path.getFileSystem(self._configuration)
        return int(directory.getFileStatus(path).getModificationTime()) if directory.exists(path) else None

    def read(self, version: int) -> dict[str, Any] | None:
        """What a commit tells of itself, None where it tells nothing."""
        read = java_method(self._session, HISTORIES, "getCommitInfoOpt")
        commit = read(self._log.store(), self._path_of(version), self._configuration)
        if not commit.isDefined():
            return None
        entry: dict[str, Any] = told(
            self._session, java_method(self._session, HISTORY, "fromCommitInfo")(commit.get())
        )
        return entry

    def files(self, version: int) -> tuple[WrittenFile, ...]:
        """The files that a commit has added. KeyError where it does not say how many rows they have."""
        lines = self._log.store().read(self._path_of(version), self._configuration)
        actions = map(json.loads, str(lines.mkString("\n")).splitlines())
        added = [action["add"] for action in actions if "add" in action]
        return tuple(
            WrittenFile(add["partitionValues"], json.loads(add["stats"])["numRecords"]) for add in added
        )


def _is_delta(known: Any) -> bool:
    return str(known.provider()).lower() == "some(delta)"


def _is_view(known: Any) -> bool:
    return bool(known.tableType().name() == "VIEW")


def _commit(entry: dict[str, Any], milliseconds: int) -> Commit:
    time = _EPOCH + timedelta(milliseconds=milliseconds)
    metrics, parameters = entry.get("operationMetrics"), entry.get("operationParameters")
    note = entry.get("userMetadata")
    return FORMAT.commit(
        entry["version"],
        time,
        operation=entry["operation"],
        metrics=metrics,
        parameters=parameters,
        note=note,
    )
