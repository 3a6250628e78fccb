"""A transaction of Delta's own writes rows, from the version that their writer has started from.

INSERT commits beside whatever has come in between. Who wants to be the next one needs settings for it, and a job that
looks for the number of the last transaction (ADR 0033). A transaction that has read the whole table at a version needs
neither: it conflicts with every commit that has changed anything since, RESTORE among them.

REPLACE WHERE has all rows of a partition in its change feed, twice. A transaction writes into it what has changed, in
the pass that writes the rows, where MERGE joins the table twice to find that out (ADR 0038).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fivm_dbt.engines.spark.active_session import active
from fivm_dbt.engines.spark.delta_lake.known_files import KnownFiles, files_of_small, relation_over
from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs, OpenedTable
from fivm_dbt.engines.spark.delta_lake.names import ACTION, TABLES, WRITE
from fivm_dbt.engines.spark.delta_lake.table_properties import set_properties
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

_ALL = "TRUE"
"""The condition of all rows."""

_DETAILS = 8
"""What an operation may tell of itself."""

_PREDICATE, _NOTE = 1, 2
"""The places of what is told."""


def write(session: SparkSession, logs: DeltaLogs, files: KnownFiles, note: Note, written: Written) -> bool:
    """Commit the rows with the note. False where a statement has to do it, and nothing was committed.

    An error of Delta's where another commit has come since ``written.after``. The commit has the number of the note
    too, for writers that go by it.
    """
    opened = logs.opened(note.table)
    if opened is None or opened.version != written.after:
        return False
    with _by_statement_if_impossible(note.table), active(session):
        condition = _condition(session, written)
        if not _is_possible(session, opened, written, condition):
            return False
        transaction = _transaction(session, opened)
        if written.allows_vectors:
            allow_vectors(transaction, opened)
        transaction.updateSetTransaction(note.application, note.number, java_class(session, OPTION).empty())
        if condition is None:
            actions = transaction.writeFiles(_added(session, opened, written.query))
        else:
            replaced = _replaced(
                session,
                opened,
                files=files,
                transaction=transaction,
                table=note.table,
                written=written,
                condition=condition,
            )
            if replaced is None:
                return False
            actions = replaced
        _commit(session, transaction, actions, instead=written.instead, note=note.text)
        return True
    return False


def write_instead(
    session: SparkSession, logs: DeltaLogs, relation: str, query: str, properties: Mapping[str, str]
) -> bool:
    """Commit the rows of a query in the place of all that a table has, and properties beside those that it has.

    False where a statement has to do it, and nothing was committed. An error of Delta's where another commit has come
    since the table was looked up.
    """
    opened = logs.opened(relation)
    if opened is None:
        return False
    with _by_statement_if_impossible(relation), active(session):
        transaction = _transaction(session, opened)
        set_properties(transaction, opened, properties)
        gone = _touched(session, opened, transaction, _parsed(session, _ALL))
        new = transaction.writeFiles(_added(session, opened, query))
        actions = _exchanged(session, transaction, new, [file.remove() for file in _listed(gone)])
        _commit(session, transaction, actions, instead=_ALL)
        return True
    return False


@contextmanager
def _by_statement_if_impossible(table: str) -> Iterator[None]:
    """End the block without an error where Delta has no such way; a statement goes another one behind it."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as why:
        # The query has other types than the table. A statement casts them.
        logger.debug("a statement writes into %s: %s", table, why)
    except Py4JError as why:
        if type(why) is not Py4JError:
            raise
        logger.debug("this Delta has no such transactions: %s", why)


def _transaction(session: SparkSession, opened: OpenedTable) -> Any:
    """One that conflicts with all that comes behind the version that was opened."""
    some = java_class(session, OPTION).apply
    transaction = opened.log.startTransaction(some(opened.table), some(opened.snapshot))
    transaction.readWholeTable()
    return transaction


def _commit(
    session: SparkSession, transaction: Any, actions: Any, *, instead: str | None, note: str | None = None
) -> None:
    some = java_class(session, OPTION).apply
    details = [java_class(session, OPTION).empty() for _ in range(_DETAILS)]
    if note is not None:
        details[_NOTE] = some(note)
    if instead is not None:
        details[_PREDICATE] = some(instead)
    modes = java_class(session, SAVE_MODE)
    mode = modes.Append if instead is None else modes.Overwrite
    transaction.commit(actions, java_class(session, WRITE)(mode, *details))


def _condition(session: SparkSession, written: Written) -> Any:
    return None if written.instead is None else _parsed(session, written.instead)


def _parsed(session: SparkSession, condition: str) -> Any:
    return session._jsparkSession.sessionState().sqlParser().parseExpression(condition)


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


def _added(session: SparkSession, opened: OpenedTable, query: str) -> Any:
    return session.sql(query)._jdf.to(opened.snapshot.schema())


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
    return _exchanged(session, transaction, new, gone, vectors)


def _exchanged(
    session: SparkSession, transaction: Any, new: Any, gone: list[Any], vectors: Sequence[Any] = ()
) -> Any:
    """All that a transaction does that writes files in the place of others."""
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
