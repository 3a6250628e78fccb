"""Change feeds that several models are about to read: their rows are read once in a process, if they are few.

Delta plans each read of a change feed by itself, from the log and the files of every commit, and gives its rows one by
one to Spark: that is half a second for ten rows. What a feed has between two versions never changes.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.delta_log import DeltaLogs
from fivm_dbt.engines.local_rows import cut, local_rows
from fivm_dbt.refresh.engine import Expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

MAX_BYTES = 8 * 1024 * 1024
"""In memory, of all columns."""

FEEDS = 20
"""So many are kept."""


class _Feed:
    """The rows of a feed as a plan of the JVM, once they have been read; None where they are too many."""

    def __init__(self) -> None:
        self.is_read = False
        self.rows: Any | None = None
        self.lock = Lock()


def read_changes(session: SparkSession, logs: DeltaLogs, feed: Expected) -> Any | None:
    """The rows of a change feed as a local relation; None where there are many, or anything is not as expected."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    opened = logs.opened(feed.relation)
    if opened is None or feed.after is None:
        return None
    # A table of the same name may have another id, and a name of a column another meaning in later versions.
    table = (str(opened.log.logPath()), str(opened.snapshot.metadata().id()), feed.after, feed.version)
    known = _feed(str(session.sparkContext.applicationId), *table)
    with known.lock:
        if not known.is_read:
            try:
                known.rows = _read(session, feed)
                known.is_read = True
            except (Py4JError, PySparkException) as why:
                # Whoever needs it asks again, and is told what is wrong.
                logger.debug("the changes of %s are read by each model: %s", feed.relation, why)
        return known.rows


@lru_cache(maxsize=FEEDS)
def _feed(application: str, place: str, table: str, after: int, version: int) -> _Feed:
    return _Feed()


def _read(session: SparkSession, feed: Expected) -> Any | None:
    assert feed.after is not None
    text = f"SELECT * FROM table_changes('{feed.relation}', {feed.after + 1}, {feed.version})"
    rows = cut(session.sql(text))
    local = local_rows(rows, MAX_BYTES)
    if local is None:
        rows.unpersist()
        return None
    return local._jdf.queryExecution().analyzed()
