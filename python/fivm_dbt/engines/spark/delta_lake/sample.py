"""Some files of a large table tell about how many values its columns have, where a pass over all rows would take long.

Rows that lie together are alike: an order's lines are of a few months, and a day is in one file. So the files are three
pieces of the table: two that follow each other, and one far from them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.spark.active_session import active
from fivm_dbt.engines.spark.delta_lake.known_files import relation_over
from fivm_dbt.engines.spark.delta_lake.log import OpenedTable
from fivm_dbt.engines.spark.delta_lake.names import ADD_FILE
from fivm_dbt.engines.spark.java import java_seq
from fivm_dbt.engines.spark.local_rows import frame_of
from fivm_dbt.ir.build import text
from fivm_dbt.naming import quote
from fivm_dbt.spark.sizes import PIECE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

MAX_FILES = 20_000
"""Their names are fetched."""

PIECE_BYTES = 4 * 2**20
"""Of each piece, at least; a larger table has larger files."""

FROM, AGAIN_FROM = 0.3, 0.7
"""Where the pieces lie, as shares of the table."""

MOST = 0.5
"""A larger share of the table is no sample of it: to read all of it takes little longer."""


@dataclass(frozen=True)
class File:
    """A file by its path and its bytes."""

    path: str
    size: int


def chosen(files: Sequence[File]) -> tuple[tuple[File, ...], ...] | None:
    """The pieces of a table whose ``files`` are in the order in which their rows lie; None where it is too small.

    >>> [[f.path for f in piece] for piece in chosen([File(str(n), PIECE_BYTES) for n in range(10)])]
    [['3'], ['4'], ['7']]
    >>> chosen([File(str(n), PIECE_BYTES) for n in range(4)]) is None
    True
    """
    total = sum(file.size for file in files)
    first = _from(files, FROM * total)
    near = (_piece(first), _piece(first))
    pieces = (*near, _piece(_from(files, AGAIN_FROM * total)))
    paths = [file.path for piece in pieces for file in piece]
    read = sum(file.size for piece in pieces for file in piece)
    is_apart = all(pieces) and len(set(paths)) == len(paths)
    return pieces if is_apart and read <= MOST * total else None


def _from(files: Sequence[File], offset: float) -> Iterator[File]:
    before = 0
    for file in files:
        if before >= offset:
            yield file
        before += file.size


def _piece(files: Iterator[File]) -> tuple[File, ...]:
    found: list[File] = []
    while sum(file.size for file in found) < PIECE_BYTES and (file := next(files, None)) is not None:
        found.append(file)
    return tuple(found)


def sample(session: SparkSession, opened: OpenedTable, name: str) -> float | None:
    """Lay pieces of a table under a name; how many times their bytes it has. None where they cannot be had."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with active(session):
            return _sample(session, opened, name)
    except (Py4JError, PySparkException) as why:
        logger.debug("all rows of %s are looked at: %s", opened.table, why)
        return None


def _sample(session: SparkSession, opened: OpenedTable, name: str) -> float | None:
    if int(opened.snapshot.numOfFiles()) > MAX_FILES:
        return None
    every = opened.snapshot.allFiles()
    files = _in_order(session, every)
    pieces = chosen(files)
    if pieces is None:
        return None
    wanted = {file.path: number for number, piece in enumerate(pieces) for file in piece}
    paths = ", ".join(text(path).sql for path in wanted)
    found = every.filter(f"path IN ({paths})").collect()
    frames = [
        _rows(session, opened, [f for f in found if wanted[f.path()] == number], number)
        for number in range(len(pieces))
    ]
    known = [frame for frame in frames if frame is not None]
    if len(known) < len(frames):
        return None
    reduce(lambda one, other: one.union(other), known).createOrReplaceTempView(quote(name))
    read = sum(file.size for piece in pieces for file in piece)
    return sum(file.size for file in files) / read


def _in_order(session: SparkSession, every: Any) -> list[File]:
    """All files as their rows lie: by the partition, and within one as they were written."""
    from pyspark.sql import DataFrame

    frame = DataFrame(every.toDF(), session)
    rows = frame.selectExpr("to_json(partitionValues)", "modificationTime", "path", "size").collect()
    return [File(path, int(size)) for _, _, path, size in sorted(tuple(row) for row in rows)]


def _rows(session: SparkSession, opened: OpenedTable, files: Sequence[Any], number: int) -> DataFrame | None:
    """The rows of some files, with the number of their piece."""
    from pyspark.sql.functions import lit

    plan = relation_over(session, opened, java_seq(session, ADD_FILE, files))
    return None if plan is None else frame_of(session, plan).withColumn(PIECE, lit(number))
