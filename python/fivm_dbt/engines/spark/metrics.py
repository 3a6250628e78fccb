"""The status store of a Spark session tells what the statements of a refresh read.

Statements are recognised by their job description, a property of the thread, so that models refreshed side by
side are kept apart. Over Thrift, HTTP or Spark Connect there is no status store: everything is then unknown.

Every question is a call into the JVM, so that what is short is asked for at once. What is long, as plans are, stays
there: an answer of more than eight kilobytes takes 40 ms, for which the sockets wait.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.spark.delta_lake.names import LOG_DIRECTORY, ON_LOG, READS_CHANGES
from fivm_dbt.engines.spark.java import as_tree, told
from fivm_dbt.naming import relation_name, split_name
from fivm_dbt.refresh.engine import Metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"
_ROWS, _FILES = "number of output rows", "number of files read"
_PAGE = 32


@dataclass(frozen=True)
class _Execution:
    """One statement that Spark has run, or a part of one."""

    own: int
    root: int
    description: str
    stages: tuple[int, ...]


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
        context = self._session.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        store = self._session._jsparkSession.sharedState().statusStore()
        # A cached plan shows its scans in every execution that reads the cache, but only the one that filled it
        # counted rows: per accumulator the largest number is the true one.
        counted: dict[int, tuple[str, int]] = {}
        files: dict[int, int] = {}
        stages: set[int] = set()
        for execution in _tagged(self._recent(store, started), tag):
            scans = self._scans(store, execution.own)
            for table, measure, accumulator, count in scans:
                if measure == _FILES:
                    files[accumulator] = max(files.get(accumulator, 0), count)
                else:
                    counted[accumulator] = max(counted.get(accumulator, (table, 0)), (table, count))
            if scans:
                stages |= set(execution.stages)
        rows: Counter[str] = Counter()
        for table, count in counted.values():
            rows[table] += count
        of_stages = context.statusStore()
        read = sum(_input_bytes(of_stages, stage) for stage in stages)
        return Metrics(sum(rows.values()), read, tuple(sorted(rows.items())), sum(files.values()))

    def _recent(self, store: Any, started: float) -> Iterator[_Execution]:
        """Executions since ``started``, newest first. The list is ordered by id and loses its oldest entries."""
        end = int(store.executionsCount())
        while end > 0:
            begin = max(0, end - _PAGE)
            # Their plans, which are long, stay in the JVM.
            page = as_tree(self._session, store.executionsList(begin, end - begin))
            names = ("executionId", "rootExecutionId", "description", "submissionTime", "stages")
            values = [told(self._session, page.findValues(name)) for name in names]
            for own, root, description, submitted, stages in reversed(list(zip(*values, strict=True))):
                # Submission times are whole milliseconds, and ids are given before them: allow for both.
                if submitted < started - 1000:
                    return
                yield _Execution(own, root, description, tuple(stages))
            end = begin

    def _scans(self, store: Any, execution: int) -> list[tuple[str, str, int, int]]:
        """Of each scan of an execution the table and what was measured: which measure, its accumulator, its value."""
        nodes = store.planGraph(execution).allNodes()
        values, found = None, []
        for node in (nodes.apply(position) for position in range(nodes.size())):
            table = scanned_table(str(node.name()))
            if table is None:
                continue
            values = values or store.executionMetrics(execution)
            for metric in told(self._session, node.metrics()):
                accumulator = int(metric["accumulatorId"])
                if metric["name"] in (_ROWS, _FILES) and values.contains(accumulator):
                    count = parse_count(str(values.apply(accumulator)))
                    found.append((table, str(metric["name"]), accumulator, count))
        return found


def _tagged(recent: Iterator[_Execution], tag: str) -> list[_Execution]:
    """Executions described by ``tag``, and those that they started, such as Delta's own for a MERGE."""
    found = list(recent)
    roots = {e.own for e in found if e.description == tag}
    # Left out are queries of a log, which read no table of anybody.
    return [e for e in found if (e.own in roots or e.root in roots) and not ON_LOG.search(e.description)]


def scanned_table(node: str) -> str | None:
    """The table that a plan node reads, canonical and without Spark's own catalog, None for other nodes.

    >>> scanned_table("Scan parquet spark_catalog.raw.Flights"), scanned_table("Scan In-memory table d")
    ('raw.flights', None)
    >>> scanned_table("Scan DeltaCDFRelation(Snapshot(...),Some(2)) spark_catalog.raw.flights")
    'raw.flights'
    """
    match = re.fullmatch(rf"Scan (?:parquet|{READS_CHANGES}) (\S.*)", node, re.DOTALL)
    if match is None or LOG_DIRECTORY in match.group(1):
        return None
    parts = split_name(match.group(1))
    return relation_name(*(parts[1:] if parts[0] == "spark_catalog" else parts))


def parse_count(text: str) -> int:
    """The number in a metric's text.

    >>> parse_count("24,576")
    24576
    """
    return int(text.replace(",", ""))


def _input_bytes(store: Any, stage: int) -> int:
    from py4j.protocol import Py4JJavaError

    try:
        return int(store.lastStageAttempt(stage).inputBytes())
    except Py4JJavaError:
        # A skipped stage, or one so old that Spark has forgotten it: it read nothing that we could add.
        return 0
