"""A transaction of Delta's own writes rows, from the version that their writer has started from.

INSERT commits beside whatever has come in between. Who wants to be the next one needs settings for it, and a job that
looks for the number of the last transaction (ADR 0033). A transaction that has read the whole table at a version needs
neither: it conflicts with every commit that has changed anything since, RESTORE among them.

REPLACE WHERE has all rows of a partition in its change feed, twice. A transaction writes into it what has changed, in
the pass that writes the rows, where MERGE joins the table twice to find that out (ADR 0038).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.spark.active_session import active
from fivm_dbt.engines.spark.delta_lake.known_files import KnownFiles, files_of_small, relation_over
from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs, OpenedTable
from fivm_dbt.engines.spark.delta_lake.names import ACTION, TABLES, WRITE
from fivm_dbt.engines.spark.delta_lake.vectors import allow_vectors, deleted
from fivm_dbt.engines.spark.java import (
    EXPRESSION,
    HASH_MAP,
    OPTION,
    SAVE_MODE,
    SQL_METRICS,
    java_class,
    java_seq,
)
from fivm_dbt.plan.model.head import Note, Written
from fivm_dbt.spark.formats import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_DETAILS = 8
"""What an operation may tell of itself."""

_PREDICATE, _NOTE = 1, 2
"""The places of what is told."""


def write(session: SparkSession, logs: DeltaLogs, files: KnownFiles, note: Note, written: Written) -> bool:
    """Commit the rows with the note. False where a statement has to do it, and nothing was committed.

    An error of Delta's where another commit has come since ``written.after``. The commit has the number of the note
    too, for writers that go by it.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException

    opened = logs.opened(note.table)
    if opened is None or opened.version != written.after:
        return False
    options = java_class(session, OPTION)
    some, none = options.apply, options.empty
    try:
        with active(session):
            condition = _condition(session, written)
            if not _is_possible(session, opened, written, condition):
                return False
            transaction = opened.log.startTransaction(some(opened.table), some(opened.snapshot))
            transaction.readWholeTable()
            if written.allows_vectors:
                allow_vectors(transaction, opened)
            transaction.updateSetTransaction(note.application, note.number, none())
            details = [none() for _ in range(_DETAILS)]
            details[_NOTE] = some(note.text)
            modes = java_class(session, SAVE_MODE)
            if written.instead is None:
                mode, actions = modes.Append, transaction.writeFiles(_added(session, opened, written))
            else:
                mode, details[_PREDICATE] = modes.Overwrite, some(written.instead)
                actions = _replaced(
                    session,
                    opened,
                    files=files,
                    transaction=transaction,
                    table=note.table,
                    written=written,
                    condition=condition,
                )
                if actions is None:
                    return False
            transaction.commit(actions, java_class(session, WRITE)(mode, *details))
    except AnalysisException as why:
        # The query has other types than the table. A statement casts them.
        logger.debug("a statement writes into %s: %s", note.table, why)
        return False
    except Py4JError as why:
        if type(why) is not Py4JError:
            raise
        logger.debug("this Delta has no such transactions: %s", why)
        return False
    return True


def _condition(session: SparkSession, written: Written) -> Any:
    if written.instead is None:
        return None
    return session._jsparkSession.sessionState().sqlParser().parseExpression(written.instead)


def _is_possible(session: SparkSession, opened: OpenedTable, written: Written, condition: Any) -> bool:
    """Whether what is replaced are whole files, and the table has a change feed where changes are told.

    A condition on anything but what the table is partitioned by is true of some rows of a file.
    """
    if condition is None:
        return True
    is_whole = java_class(session, TABLES).isPredicatePartitionColumnsOnly(
        condition, opened.metadata.partitionColumns(), session._jsparkSession
    )
    return bool(is_whole) and (opened.has_feed or not written.tells_changes)


def _added(session: SparkSession, opened: OpenedTable, written: Written) -> Any:
    return session.sql(written.query)._jdf.to(opened.snapshot.schema())


def _replaced(
    session: SparkSession,
    opened: OpenedTable,
    files: KnownFiles,
    transaction: Any,
    table: str,
    written: Written,
    condition: Any,
) -> Any | None:
    """The files that come, with rows or with changes, and those that go: all that the query reads of the table.

    With them those that stay with vectors. None where rows cannot be deleted.
    """
    vectors = deleted(session, opened, written.deleted) if written.deleted else []
    if vectors is None:
        return None
    found = _touched(session, opened, transaction, condition)
    gone = [file.remove() for file in _listed(found)]
    schema = opened.snapshot.schema()
    if written.tells_changes:
        schema = schema.add(FORMAT.change_type.name, "string", True)
    query = files.placed_over(written.query, opened, table, found)
    new = transaction.writeFiles(session.sql(query)._jdf.to(schema))
    added = [file for file in _listed(new) if file.getClass().getSimpleName() == "AddFile"]
    _tell_metrics(session, transaction, added, gone, len(vectors))
    return new.concat(java_seq(session, ACTION, [*gone, *vectors]))


def _touched(session: SparkSession, opened: OpenedTable, transaction: Any, condition: Any) -> Any:
    """The files with the rows that are replaced: without a job where those of the table are known."""
    tests = java_seq(session, EXPRESSION, [condition])
    known = files_of_small(session, opened.snapshot)
    relation = None if known is None else relation_over(session, opened, known)
    if relation is None:
        return transaction.filterFiles(tests, False)
    return relation.relation().location().matchingFiles(tests, java_seq(session, EXPRESSION, []))


def _tell_metrics(
    session: SparkSession, transaction: Any, added: list[Any], gone: list[Any], vectors: int
) -> None:
    """What REPLACE WHERE tells of itself in the history: of rows of the table, and not of its change feed.

    A commit that vectors rows has not only added some: the file that it vectors goes, and comes again.
    """
    rows = [file.numPhysicalRecords() for file in added]
    told = {
        "numRemovedFiles": len(gone) + vectors,
        "numRemovedBytes": sum(int(file.getFileSize()) for file in gone),
        "numOutputBytes": sum(int(file.getFileSize()) for file in added),
        "numOutputRows": sum(int(found.get()) for found in rows if found.isDefined()),
    }
    metrics = java_class(session, HASH_MAP)()
    context = session.sparkContext._jsc.sc()
    for name, value in told.items():
        metric = java_class(session, SQL_METRICS).createMetric(context, name)
        metric.set(value)
        metrics = metrics.updated(name, metric)
    transaction.registerSQLMetrics(session._jsparkSession, metrics)


def _listed(found: Any) -> list[Any]:
    """A sequence of Scala's as a list."""
    return [found.apply(position) for position in range(int(found.size()))]
