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
        told(json.loads(stats), partition, columns)
        for partition, stats in files
        if stats is not None and partition.get(VIEW, ROOT) == ROOT
    ]


def told(
    stats: Mapping[str, object], partition: Mapping[str, str | None], columns: Sequence[str]
) -> Mapping[str, KeyRange]:
    """What the statistics of a file, and the partition that it is of, say of these columns: numbers, or microseconds.

    >>> low, high = {"id": 1, "n": "a"}, {"id": 9, "n": "b"}
    >>> stats = {"numRecords": 5, "minValues": low, "maxValues": high}
    >>> found = told(stats, {"day": "1970-01-02", "year": "1970", "of": None}, ["id", "day", "year", "n", "of"])
    >>> found["id"], found["day"].low == found["day"].high == 86_400_000_000, sorted(found)
    (KeyRange(low=1, high=9, rows=5), True, ['day', 'id', 'year'])
    """
    rows, low, high = (stats.get(key) for key in ("numRecords", "minValues", "maxValues"))
    found: dict[str, KeyRange] = {}
    if not isinstance(rows, int):
        return found
    for name in columns:
        ends = [_number(of.get(name)) for of in (low, high) if isinstance(of, Mapping)]
        if None in ends or len(ends) < 2:
            ends = [_number(partition.get(name))] * 2
        first, last = ends
        if first is not None and last is not None:
            found[name] = KeyRange(first, last, rows)
    return found


def _number(value: object) -> int | None:
    """A number, or a time as the log writes it; None for anything else."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    if value.lstrip("-").isdigit():
        return int(value)
    try:
        return KeyRange.number(datetime.fromisoformat(value.replace("Z", "+00:00")))
    except ValueError:
        return None
