"""What the statements of a refresh read, from the status store of the Spark session that ran them.

Statements are recognised by their job description, a property of the thread, so that models refreshed side by
side are kept apart. Over Thrift, HTTP or Spark Connect there is no status store: everything is then unknown.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fivm_dbt.naming import relation_name, split_name
from fivm_dbt.refresh.engine import Metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"
_ROWS, _FILES = "number of output rows", "number of files read"
_PAGE = 64
_ON_LOG = re.compile("Filtering files for query|Compute snapshot for version")


class SessionMetrics:
    """Attributes statements of this thread to a tag, and adds up what they read."""

    def __init__(self, session: Any | None) -> None:
        self._session = session
        self._started: dict[str, float] = {}
        self._before = session and session.sparkContext.getLocalProperty(_DESCRIPTION)

    @staticmethod
    def of(session: SparkSession | None) -> SessionMetrics:
        """Metrics of a classic session; of Spark Connect's and of none, metrics that know nothing."""
        return SessionMetrics(session if hasattr(session, "_jsparkSession") else None)

    def start(self, tag: str) -> None:
        if self._session is None:
            return
        self._started[tag] = time.time() * 1000
        self._session.sparkContext.setLocalProperty(_DESCRIPTION, tag)

    def stop(self) -> None:
        if self._session is not None:
            self._session.sparkContext.setLocalProperty(_DESCRIPTION, self._before)

    def read(self, tag: str) -> Metrics:
        if self._session is None or tag not in self._started:
            return Metrics()
        self.stop()
        started = self._started.pop(tag)
        context = self._session.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty()
        store = self._session._jsparkSession.sharedState().statusStore()
        # A cached plan shows its scans in every execution that reads the cache, but only the one that filled it
        # counted rows: per accumulator the largest number is the true one.
        counted: dict[int, tuple[str, int]] = {}
        files: dict[int, int] = {}
        stages: set[int] = set()
        for execution in _tagged(store, tag, started):
            scans = list(_scans(store, execution.executionId()))
            for table, measure, accumulator, count in scans:
                if measure == _FILES:
                    files[accumulator] = max(files.get(accumulator, 0), count)
                else:
                    counted[accumulator] = max(counted.get(accumulator, (table, 0)), (table, count))
            if scans:
                stages |= set(_integers(execution.stages()))
        rows: Counter[str] = Counter()
        for table, count in counted.values():
            rows[table] += count
        read = sum(_input_bytes(context._jsc.sc().statusStore(), stage) for stage in stages)
        return Metrics(sum(rows.values()), read, tuple(sorted(rows.items())), sum(files.values()))


def _tagged(store: Any, tag: str, started: float) -> list[Any]:
    """Executions described by ``tag``, and those that they started, such as Delta's own for a MERGE."""
    recent = [(e.executionId(), e.rootExecutionId(), e.description(), e) for e in _recent(store, started)]
    roots = {own for own, _, description, _ in recent if description == tag}
    mine = [(description, e) for own, root, description, e in recent if own in roots or root in roots]
    # Every question is a call into the JVM: leave out what reads no table, Delta's log queries and plain commands.
    return [e for description, e in mine if not _ON_LOG.search(description) and not e.metrics().isEmpty()]


def _recent(store: Any, started: float) -> Iterator[Any]:
    """Executions since ``started``, newest first. The list is ordered by id and loses its oldest entries."""
    end = int(store.executionsCount())
    while end > 0:
        begin = max(0, end - _PAGE)
        page = store.executionsList(begin, end - begin)
        for position in reversed(range(page.size())):
            execution = page.apply(position)
            # Submission times are whole milliseconds, and ids are given before them: allow for both.
            if execution.submissionTime() < started - 1000:
                return
            yield execution
        end = begin


def _scans(store: Any, execution: int) -> Iterator[tuple[str, str, int, int]]:
    """Of each scan of an execution the table and what was measured: which measure, its accumulator, its value."""
    values = None
    nodes = store.planGraph(execution).allNodes()
    for position in range(nodes.size()):
        node = nodes.apply(position)
        table = scanned_table(str(node.name()))
        if table is None:
            continue
        values = values or store.executionMetrics(execution)
        metrics = node.metrics()
        for place in range(metrics.size()):
            metric = metrics.apply(place)
            accumulator = metric.accumulatorId()
            if metric.name() in (_ROWS, _FILES) and values.contains(accumulator):
                count = parse_count(str(values.get(accumulator).get()))
                yield table, str(metric.name()), int(accumulator), count


def scanned_table(node: str) -> str | None:
    """The table that a plan node reads, canonical and without Spark's own catalog, None for other nodes.

    >>> scanned_table("Scan parquet spark_catalog.raw.Flights"), scanned_table("Scan In-memory table d")
    ('raw.flights', None)
    >>> scanned_table("Scan DeltaCDFRelation(Snapshot(...),Some(2)) spark_catalog.raw.flights")
    'raw.flights'
    """
    match = re.fullmatch(r"Scan (?:parquet|DeltaCDFRelation\(.*\)) (\S.*)", node, re.DOTALL)
    if match is None or "_delta_log" in match.group(1):
        return None
    parts = split_name(match.group(1))
    return relation_name(*(parts[1:] if parts[0] == "spark_catalog" else parts))


def parse_count(text: str) -> int:
    """The number in a metric's text.

    >>> parse_count("24,576")
    24576
    """
    return int(text.replace(",", ""))


def _integers(scala_set: Any) -> Iterator[int]:
    iterator = scala_set.iterator()
    while iterator.hasNext():
        yield int(iterator.next())


def _input_bytes(store: Any, stage: int) -> int:
    from py4j.protocol import Py4JJavaError

    try:
        return int(store.lastStageAttempt(stage).inputBytes())
    except Py4JJavaError:
        # A skipped stage, or one so old that Spark has forgotten it: it read nothing that we could add.
        return 0
