"""Rows are deleted in their file by a deletion vector of Delta's, which is a set of their numbers (ADR 0070)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.spark.delta_lake.log import OpenedTable
from fivm_dbt.engines.spark.delta_lake.names import (
    PREFIXES,
    ROW_NUMBERS,
    SKIPPING,
    VECTOR_ROWS,
    VECTORS,
)
from fivm_dbt.engines.spark.delta_lake.table_properties import set_properties
from fivm_dbt.engines.spark.java import java_class, java_object
from fivm_dbt.ir.build import text
from fivm_dbt.naming import FILE, ROW, quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

PATH = "org.apache.spark.paths.SparkPath"

_FILES = "fivm_vector_files"


def allows_vectors(opened: OpenedTable) -> bool:
    """Whether files of the table may have deletion vectors, and Spark reads such files and shows numbers of rows."""
    return opened.has(VECTORS) and all(
        opened.session.conf.get(key, "true") == "true" for key in (ROW_NUMBERS, SKIPPING)
    )


def allow_vectors(transaction: Any, opened: OpenedTable) -> None:
    """Have files of the table deletion vectors after this transaction, which has written nothing yet."""
    if opened.has(VECTORS):
        return
    set_properties(transaction, opened, {VECTORS: "true"})


def deleted(session: SparkSession, opened: OpenedTable, staged: tuple[str, ...]) -> list[Any] | None:
    """What a commit does with the files of the rows whose places are ``staged``: each goes, and comes with its vector,
    unless all of its rows are deleted.

    None where a file is not as expected: it has another place than the table, or no number of its rows, or its vector
    has not the rows too that were deleted before.
    """
    places = " UNION ALL ".join(f"SELECT {FILE}, {ROW} FROM {quote(name)}" for name in staged)
    files = _files(session, opened, places)
    if files is None:
        return None
    found = _vectors(session, opened, places, files)
    actions = []
    for position in range(int(found.size())):
        result = found.apply(position)
        file, vector = files[result.filePath()], result.deletionVector()
        if int(vector.cardinality()) != int(file.numDeletedRecords()) + int(result.matchedRowCount()):
            logger.debug("a deletion vector of %s has lost rows that were deleted before", file.path())
            return None
        if int(vector.cardinality()) == int(file.numPhysicalRecords().get()):
            actions.append(file.remove())
        else:
            pair = file.removeRows(vector, True, True)
            actions += [pair._1(), pair._2()]
    return actions


def _files(session: SparkSession, opened: OpenedTable, places: str) -> dict[str, Any] | None:
    """The files of some places by their paths there, as the log has them."""
    paths = [str(row[0]) for row in session.sql(f"SELECT DISTINCT {FILE} FROM ({places})").collect()]
    if not paths:
        return {}
    root = f"{java_class(session, PATH).fromPath(opened.log.dataPath()).urlEncoded()}/"
    if not all(path.startswith(root) for path in paths):
        return None
    names = ", ".join(text(path.removeprefix(root)).sql for path in paths)
    found = {
        f"{root}{f.path()}": f for f in opened.snapshot.allFiles().filter(f"path IN ({names})").collect()
    }
    if found.keys() != set(paths) or not all(f.numPhysicalRecords().isDefined() for f in found.values()):
        return None
    return found


def _vectors(session: SparkSession, opened: OpenedTable, places: str, files: dict[str, Any]) -> Any:
    """For each file the vector with the rows of some places, and those that it had, which is written by this."""
    known = [
        (path, None if file.deletionVector() is None else file.deletionVector().serializeToBase64())
        for path, file in files.items()
    ]
    session.createDataFrame(known, "path string, vector string").createOrReplaceTempView(_FILES)
    try:
        rows = session.sql(
            f"SELECT /*+ BROADCAST({_FILES}) */ path AS filePath, vector AS deletionVectorId, {ROW} AS rowIndexCol "
            f"FROM ({places}) JOIN {_FILES} ON path = {FILE}"
        )
        prefix = java_object(session, PREFIXES).getRandomPrefixLength(opened.metadata)
        return java_object(session, VECTOR_ROWS).buildDeletionVectors(
            session._jsparkSession, rows._jdf, opened.log, prefix
        )
    finally:
        session.catalog.dropTempView(_FILES)
