"""Rows read by a statement, from Spark's own metrics of its scans (not an estimate)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

# A scan of a cached table is no read of it, and Delta's own log is no data.
_NOT_DATA = ("Scan In-memory", "Scan ExistingRDD Delta Table State", "_delta_log")


@dataclass
class RowsRead:
    """Filled when the measured block ends."""

    total: int = 0
    scans: dict[str, int] = field(default_factory=dict)


@contextmanager
def rows_read(spark: SparkSession, tag: str) -> Iterator[RowsRead]:
    """Measure the statements of the block; `tag` tells them from others of the same session."""
    context = spark.sparkContext
    store = spark._jsparkSession.sharedState().statusStore()
    before = _last_id(store)
    measured = RowsRead()
    context.setLocalProperty("spark.job.description", tag)
    try:
        yield measured
    finally:
        context.setLocalProperty("spark.job.description", None)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    for name, rows in _scans(store, before, tag):
        measured.scans[name] = measured.scans.get(name, 0) + rows
        measured.total += rows


def _last_id(store: Any) -> int:
    """Ids only grow, while Spark forgets the oldest executions: a position in its list is no mark."""
    return int(store.executionsList().last().executionId()) if store.executionsCount() else -1


def _executions_after(store: Any, mark: int, tag: str) -> list[int]:
    """Those with this tag, and those that they started, as a write to Delta does."""
    executions = store.executionsList()
    recent = []
    for index in reversed(range(executions.size())):
        execution = executions.apply(index)
        if execution.executionId() <= mark:
            break
        recent.append(execution)
    roots = {execution.executionId() for execution in recent if execution.description() == tag}
    return [each.executionId() for each in recent if {each.executionId(), each.rootExecutionId()} & roots]


def _scans(store: Any, mark: int, tag: str) -> Iterator[tuple[str, int]]:
    for identifier in _executions_after(store, mark, tag):
        values = store.executionMetrics(identifier)
        nodes = store.planGraph(identifier).allNodes()
        for index in range(nodes.size()):
            node = nodes.apply(index)
            if _reads_data(node.name()):
                yield node.name(), _output_rows(node, values)


def _reads_data(name: str) -> bool:
    return name.startswith(("Scan ", "BatchScan ")) and not any(other in name for other in _NOT_DATA)


def _output_rows(node: Any, values: Any) -> int:
    metrics = node.metrics()
    for index in range(metrics.size()):
        metric = metrics.apply(index)
        if metric.name() == "number of output rows" and values.contains(metric.accumulatorId()):
            return int(values.get(metric.accumulatorId()).get().replace(",", ""))
    return 0
