"""Few rows become a part of the plans that read them: Spark's local relation, as VALUES is too.

A plan over it starts no job for it, filters and projects it before it runs, knows its true size and leaves out what is
joined to it if it is empty.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.spark.java import (
    ARRAY_SEQ,
    BLOCK_ID,
    DATASET,
    LOCAL_RELATION,
    LOGICAL_RDD,
    OPTION,
    SPARK_ENV,
    java_class,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

MAX_BYTES = 2 * 1024 * 1024
"""In memory, where a row takes some hundred bytes more than its values."""

IN_OBJECTS = 3
"""So many times the bytes of its values a row takes in memory, about: 124 and 33 to 46 with four columns."""

MAX_PARTITIONS = 64
"""The size of each is asked for."""


FEW = 2_000
"""Rows that are fetched faster than Spark adds them up."""

_MANY = 1_000_000
"""More partitions than anything staged has."""

_NUMBER, _ROW = "__fivm_query", "__fivm_row_"


_CONCLUSIONS = "spark.sql.constraintPropagation.enabled"


def unordered(frame: DataFrame) -> DataFrame:
    """The same rows, to be cut from what they are computed from.

    To coalesce into more partitions than there are moves nothing and forgets the order of the rows, which may be one by
    columns that the rows do not have, and then fails whoever reads them twice in a statement.
    """
    return frame.coalesce(_MANY)


def checkpointed(frame: DataFrame) -> DataFrame:
    """The same rows, computed: they do not know what they were computed from.

    Spark keeps what it concludes of them, and compares it. It cannot compare every conclusion: of an aggregate without
    keys that a statement has twice it makes a subquery, and fails at one within another (Spark 4.2). Then the rows
    are computed once more, and nothing is concluded.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return frame.localCheckpoint()
    except Py4JJavaError as error:
        if "UnresolvedException" not in str(error.java_exception.toString()):
            raise
    session = frame.sparkSession
    before = session.conf.get(_CONCLUSIONS)
    session.conf.set(_CONCLUSIONS, "false")
    try:
        return frame.localCheckpoint()
    finally:
        session.conf.set(_CONCLUSIONS, before)


def deferred(frame: DataFrame, name: str, counts: Sequence[str]) -> DataFrame:
    """A query that adds up ``counts``, if any, under ``name`` while its rows are read."""
    from pyspark.sql.functions import expr

    if not counts:
        return frame
    return frame.observe(name, *(expr(c).alias(f"count_{number}") for number, c in enumerate(counts)))


def observed(frame: DataFrame, name: str) -> tuple[object, ...] | None:
    """What was added up under a name while a frame ran, None where Spark has left that part of it out."""
    found = frame._jdf.queryExecution().observedMetrics().get(name)
    if not found.isDefined():
        return None
    row = found.get()
    return tuple(row.get(place) for place in range(row.size()))


def together(session: SparkSession, queries: Sequence[str]) -> DataFrame:
    """The rows of several queries as those of one: the number of the query, and a struct for each, NULL but for one.

    To plan and to run one query of many branches takes less time than many queries.
    """
    from pyspark.sql.functions import lit, struct

    frames = [session.sql(query) for query in queries]
    # Each is made once: a cast of a column asks the JVM several times, and there are as many columns as branches.
    nulls = [lit(None).cast(frame.schema).alias(f"{_ROW}{number}") for number, frame in enumerate(frames)]

    def numbered(number: int, frame: DataFrame) -> DataFrame:
        row = struct("*").alias(f"{_ROW}{number}")
        return frame.select(lit(number).alias(_NUMBER), *nulls[:number], row, *nulls[number + 1 :])

    return reduce(lambda one, other: one.union(other), (numbered(i, f) for i, f in enumerate(frames)))


def apart(rows: DataFrame, count: int) -> list[DataFrame]:
    """The rows of each of the queries that were computed together. Of local rows each is a local relation again."""
    from pyspark.sql.functions import col

    parts = (rows.where(col(_NUMBER) == number).select(f"{_ROW}{number}.*") for number in range(count))
    return [_folded(part) for part in parts]


def length(frame: DataFrame) -> int:
    """How many rows the local relations of a frame have."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return sum(int(leaves.apply(position).data().length()) for position in range(leaves.size()))


def _folded(frame: DataFrame) -> DataFrame:
    """A frame as it is optimised, if that is a local relation: else each plan that reads it does this work."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return frame_of(frame.sparkSession, plan) if plan.nodeName() == "LocalRelation" else frame


def frame_of(session: SparkSession, plan: Any) -> DataFrame:
    """The rows of a logical plan."""
    from pyspark.sql import DataFrame

    return DataFrame(java_class(session, DATASET).ofRows(session._jsparkSession, plan), session)


def local_rows(frame: DataFrame) -> DataFrame | None:
    """The rows of a checkpointed frame as a local relation, None where they are too many; they are then still there.

    They are moved as Spark's own rows: as Java's or Python's, days before 1582 and hours of a clock change are others.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    session = frame.sparkSession
    execution = frame._jdf.queryExecution()
    try:
        stored, columns = execution.analyzed().rdd(), execution.analyzed().output()
        if _size(session, stored) > MAX_BYTES:
            return None
        rows = java_class(session, ARRAY_SEQ).unsafeWrapArray(stored.collect())
        none = java_class(session, OPTION).empty()
        relation = java_class(session, LOCAL_RELATION)(columns, rows, False, none)
        local = frame_of(session, relation)
    except Py4JJavaError:
        raise
    except Py4JError as why:
        logger.debug("this Spark has no such local relations: %s", why)
        return None
    stored.unpersist(False)
    return local


def stored_rows(frame: DataFrame) -> DataFrame | None:
    """The rows of a checkpointed frame as a relation of their size, None where that is not known.

    Spark broadcasts what is small, and takes a checkpoint for as large as it has estimated what was computed.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    session = frame.sparkSession
    plan = frame._jdf.queryExecution().analyzed()
    if plan.rdd().getNumPartitions() > MAX_PARTITIONS:
        return None
    option, size = java_class(session, OPTION), _size(session, plan.rdd()) // IN_OBJECTS
    none, known = option.empty(), option.apply(_statistics(session, size))
    places = plan.outputPartitioning(), plan.outputOrdering()
    try:
        made = java_class(session, LOGICAL_RDD)
        own = session._jsparkSession
        return frame_of(session, made(plan.output(), plan.rdd(), *places, False, none, own, known, none))
    except Py4JJavaError:
        raise
    except Py4JError as why:
        logger.debug("this Spark has no such relations over stored rows: %s", why)
        return None


def _statistics(session: SparkSession, size: int) -> Any:
    """What Spark knows of so many bytes: of as many numbers. A large number of Scala's own cannot be handed over."""
    numbers = session.range(max(1, size // 8)).selectExpr("id + 1 AS id")
    return numbers._jdf.queryExecution().analyzed().stats()


def _size(session: SparkSession, stored: Any) -> int:
    """The bytes of stored rows, as the block managers have told them; more than enough where they are not asked."""
    count = stored.getNumPartitions()
    if count > MAX_PARTITIONS:
        return MAX_BYTES + 1
    master = java_class(session, SPARK_ENV).get().blockManager().master()
    size = 0
    for partition in range(count):
        block = java_class(session, BLOCK_ID)(stored.id(), partition)
        places = master.getBlockStatus(block, False).values().iterator()
        while places.hasNext():
            status = places.next()
            size += int(status.memSize()) + int(status.diskSize())
    return size
