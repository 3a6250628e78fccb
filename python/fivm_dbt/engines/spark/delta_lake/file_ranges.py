"""A table's log says of each file which values its columns have, without a look at a row."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from fivm_dbt.catalog import KeyRange
from fivm_dbt.engines.spark.active_session import active
from fivm_dbt.engines.spark.delta_lake.log import OpenedTable
from fivm_dbt.engines.spark.delta_lake.sample import MAX_FILES
from fivm_dbt.naming import ROOT, VIEW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


def file_ranges(
    session: SparkSession, opened: OpenedTable, columns: Sequence[str]
) -> Sequence[Mapping[str, KeyRange]]:
    """As :meth:`fivm_dbt.refresh.engine.Engine.files`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    try:
        with active(session):
            if int(opened.snapshot.numOfFiles()) > MAX_FILES:
                return ()
            frame = DataFrame(opened.snapshot.allFiles().toDF(), session)
            files = frame.selectExpr("partitionValues", "stats").collect()
    except (Py4JError, PySparkException) as why:
        logger.debug("what the files of %s have is not known: %s", opened.table, why)
        return ()
    return [
        told(json.loads(stats), columns)
        for partition, stats in files
        if stats is not None and partition.get(VIEW, ROOT) == ROOT
    ]


def told(stats: Mapping[str, object], columns: Sequence[str]) -> Mapping[str, KeyRange]:
    """What the statistics of a file say of these columns: numbers, or times in microseconds.

    >>> low, high = {"id": 1, "on": "1970-01-02", "n": "a"}, {"id": 9, "on": "1970-01-02", "n": "b"}
    >>> found = told({"numRecords": 5, "minValues": low, "maxValues": high}, ["id", "on", "n"])
    >>> found["id"], found["on"].low == found["on"].high == 86_400_000_000, "n" in found
    (KeyRange(low=1, high=9, rows=5), True, False)
    """
    rows, low, high = (stats.get(key) for key in ("numRecords", "minValues", "maxValues"))
    found = {}
    if isinstance(rows, int) and isinstance(low, Mapping) and isinstance(high, Mapping):
        for name in columns:
            ends = _number(low.get(name)), _number(high.get(name))
            if ends[0] is not None and ends[1] is not None:
                found[name] = KeyRange(ends[0], ends[1], rows)
    return found


def _number(value: object) -> int | None:
    """A number, or a time as the log writes it; None for anything else."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    try:
        return KeyRange.number(datetime.fromisoformat(value.replace("Z", "+00:00")))
    except ValueError:
        return None
