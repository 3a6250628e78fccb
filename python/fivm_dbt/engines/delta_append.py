"""Rows added to a Delta table by a transaction of Delta's own, from the version that their writer has started from.

INSERT commits beside whatever has come in between. Who wants to be the next one needs settings for it, and a job that
looks for the number of the last transaction (ADR 0033). A transaction that has read the whole table at a version needs
neither: it conflicts with every commit that has changed anything since, RESTORE among them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fivm_dbt.engines.active_session import active
from fivm_dbt.engines.delta_log import DeltaLogs
from fivm_dbt.engines.java import DELTA_WRITE, OPTION, SAVE_MODE, java_class
from fivm_dbt.plan.head import Added, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_DETAILS = 8
"""What an operation may tell of itself, which an append does not."""


def append(session: SparkSession, logs: DeltaLogs, note: Note, added: Added) -> bool:
    """Commit the rows with the note. False where a statement has to do it, and nothing was committed.

    An error of Delta's where another commit has come since ``added.after``. The commit has the number of the note too,
    for writers that go by it.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException

    opened = logs.opened(note.table)
    if opened is None or int(opened.snapshot.version()) != added.after:
        return False
    options = java_class(session, OPTION)
    some, none = options.apply, options.empty
    try:
        with active(session):
            rows = session.sql(added.query)._jdf.to(opened.snapshot.schema())
            transaction = opened.log.startTransaction(some(opened.table), some(opened.snapshot))
            transaction.readWholeTable()
            transaction.updateSetTransaction(note.application, note.number, none())
            details = [none() for _ in range(_DETAILS)]
            details[2] = some(note.text)
            operation = java_class(session, DELTA_WRITE)(java_class(session, SAVE_MODE).Append, *details)
            transaction.commit(transaction.writeFiles(rows), operation)
    except AnalysisException as why:
        # The query has other types than the table. INSERT casts them.
        logger.debug("a statement appends to %s: %s", note.table, why)
        return False
    except Py4JError as why:
        if type(why) is not Py4JError:
            raise
        logger.debug("this Delta has no such transactions: %s", why)
        return False
    return True
