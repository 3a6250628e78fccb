"""A table's log says of each file which values its columns have, without a look at a row."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
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
    """What the statistics of a file say of these columns.

    >>> told({"numRecords": 5, "minValues": {"id": 1, "n": "a"}, "maxValues": {"id": 9, "n": "b"}}, ["id", "n"])
    {'id': KeyRange(low=1, high=9, rows=5)}
    """
    rows, low, high = (stats.get(key) for key in ("numRecords", "minValues", "maxValues"))
    found = {}
    if isinstance(rows, int) and isinstance(low, Mapping) and isinstance(high, Mapping):
        for name in columns:
            ends = low.get(name), high.get(name)
            if isinstance(ends[0], int) and isinstance(ends[1], int):
                found[name] = KeyRange(ends[0], ends[1], rows)
    return found
