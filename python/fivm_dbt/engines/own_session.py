"""A query over little runs interpreted, in a copy of the session that is made for it.

Spark compiles every query of a new shape to Java before it reads a row. Over few rows that is half of the time, and
over many rows what makes it fast. The settings are those of a copy, which has the settings, temporary views and
functions that the session has at that moment; the session itself stays as it is, also after an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

SMALL = 1024 * 1024
"""Bytes of all tables that are read, as files, each whole: some fifty thousand rows."""

INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def query_in_copy(session: SparkSession, sql: str) -> tuple[DataFrame, bool]:
    """A query in a copy of the session, not run yet, and whether it will run interpreted."""
    from pyspark.sql import SparkSession

    copy = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    frame = copy.sql(sql)
    is_small = _reads_little(frame._jdf.queryExecution().analyzed())
    if is_small:
        for key, value in INTERPRETED.items():
            copy.conf.set(key, value)
    return frame, is_small


def _reads_little(plan: Any) -> bool:
    """Whether all that a plan reads is known to be small. What a change feed has is not, nor what was cut off."""
    from py4j.protocol import Py4JError

    total = 0
    try:
        for leaf in _leaves(plan):
            # Its definition is another part of the plan.
            if leaf.nodeName() != "CTERelationRef":
                total += int(str(leaf.stats().sizeInBytes()))
            if total > SMALL:
                return False
    except Py4JError as why:
        logger.debug("how much is read is not known: %s", why)
        return False
    return True


def _leaves(plan: Any) -> Iterator[Any]:
    """What a plan reads, in its subqueries too."""
    yield from _items(plan.collectLeaves())
    for query in _items(plan.subqueriesAll()):
        yield from _items(query.collectLeaves())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(position) for position in range(sequence.size()))
