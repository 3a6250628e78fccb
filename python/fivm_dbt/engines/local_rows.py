"""Few rows as a part of the plans that read them: Spark's local relation, what VALUES is too.

A plan over it starts no job for it, filters and projects it before it runs, knows its true size and leaves out what is
joined to it if it is empty.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

MAX_BYTES = 2 * 1024 * 1024
"""In memory, where a row takes some hundred bytes more than its values."""

MAX_PARTITIONS = 64
"""The size of each is asked for."""


_MANY = 1_000_000
"""More partitions than anything staged has."""

_NUMBER, _ROW = "__fivm_query", "__fivm_row_"


def cut(frame: DataFrame) -> DataFrame:
    """The rows of a query, which do not know what they were computed from.

    To coalesce into more partitions than there are moves nothing and forgets the order of the rows, which may be one by
    columns that the rows do not have, and then fails whoever reads them twice in a statement.
    """
    return frame.coalesce(_MANY).localCheckpoint()


def together(session: SparkSession, queries: Sequence[str]) -> DataFrame:
    """The rows of several queries as those of one: the number of the query, and a struct for each, NULL but for one.

    To plan and to run one query of many branches takes less time than many queries.
    """
    from pyspark.sql.functions import lit, struct

    frames = [session.sql(query) for query in queries]
    types = [frame.schema for frame in frames]

    def numbered(number: int, frame: DataFrame) -> DataFrame:
        rows = [struct("*") if i == number else lit(None).cast(type_) for i, type_ in enumerate(types)]
        named = (row.alias(f"{_ROW}{i}") for i, row in enumerate(rows))
        return frame.select(lit(number).alias(_NUMBER), *named)

    return reduce(lambda one, other: one.union(other), (numbered(i, f) for i, f in enumerate(frames)))


def apart(rows: DataFrame, count: int) -> list[DataFrame]:
    """The rows of each of the queries that were computed together. Of local rows each is a local relation again."""
    from pyspark.sql.functions import col

    parts = (rows.where(col(_NUMBER) == number).select(f"{_ROW}{number}.*") for number in range(count))
    return [_folded(part) for part in parts]


def _folded(frame: DataFrame) -> DataFrame:
    """A frame as it is optimised, if that is a local relation: else each plan that reads it does this work."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return _frame(frame.sparkSession, plan) if plan.nodeName() == "LocalRelation" else frame


def _frame(session: SparkSession, plan: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    dataset = session._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def local_rows(frame: DataFrame) -> DataFrame | None:
    """The rows of a checkpointed frame as a local relation, None where they are too many; they are then still there.

    They are moved as Spark's own rows: as Java's or Python's, days before 1582 and hours of a clock change are others.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    session = frame.sparkSession
    jvm, execution = session._jvm, frame._jdf.queryExecution()
    try:
        stored, columns = execution.analyzed().rdd(), execution.analyzed().output()
        if _size(jvm, stored) > MAX_BYTES:
            return None
        rows = jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(stored.collect())
        relation = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation(
            columns, rows, False, jvm.scala.Option.empty()
        )
        local = _frame(session, relation)
    except Py4JJavaError:
        raise
    except Py4JError as why:
        logger.debug("this Spark has no such local relations: %s", why)
        return None
    stored.unpersist(False)
    return local


def _size(jvm: Any, stored: Any) -> int:
    """The bytes of stored rows, as the block managers have told them; more than enough where they are not asked."""
    count = stored.getNumPartitions()
    if count > MAX_PARTITIONS:
        return MAX_BYTES + 1
    master = jvm.org.apache.spark.SparkEnv.get().blockManager().master()
    size = 0
    for partition in range(count):
        block = jvm.org.apache.spark.storage.RDDBlockId(stored.id(), partition)
        places = master.getBlockStatus(block, False).values().iterator()
        while places.hasNext():
            status = places.next()
            size += int(status.memSize()) + int(status.diskSize())
    return size
