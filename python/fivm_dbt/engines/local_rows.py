"""Few rows as a part of the plans that read them: Spark's local relation, what VALUES is too.

A plan over it starts no job for it, filters and projects it before it runs, knows its true size and leaves out what is
joined to it if it is empty.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

MAX_BYTES = 2 * 1024 * 1024
"""In memory, where a row takes some hundred bytes more than its values."""

MAX_PARTITIONS = 64
"""The size of each is asked for."""


def local_rows(frame: DataFrame) -> DataFrame | None:
    """The rows of a checkpointed frame as a local relation, None where they are too many; they are then still there.

    They are moved as Spark's own rows: as Java's or Python's, days before 1582 and hours of a clock change are others.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.sql import DataFrame

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
        local = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, relation)
    except Py4JJavaError:
        raise
    except Py4JError as why:
        logger.debug("this Spark has no such local relations: %s", why)
        return None
    stored.unpersist(False)
    return DataFrame(local, session)


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
