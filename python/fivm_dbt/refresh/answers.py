"""Models that read one table ask the same of its pinned versions: one of them asks, and the others are told."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING

from fivm_dbt.spark.formats import Commit

if TYPE_CHECKING:
    from fivm_dbt.refresh.engine import Row

MANY = 256
"""So many answers are kept; those of one run, and not of all runs of a process."""


class Answers:
    """The answers of queries over pinned versions, for all engines that mean the same tables by their names.

    A version is told by its number and by its commit: numbers restart where a table is created anew.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Future[Sequence[Row]]] = OrderedDict()
        self._lock = Lock()

    def of(self, sql: str, versions: Sequence[Commit], ask: Callable[[str], Sequence[Row]]) -> Sequence[Row]:
        """The answer of a query that reads no other versions; of two who want it at once one waits for the other.

        An error of ``ask`` is that of all who wait for it. Whoever comes later asks again.

        >>> answers, commit = Answers(), Commit(3, "2024-05-01", "WRITE")
        >>> [answers.of("SELECT 1", [commit], lambda sql: [(many,)]) for many in (1, 2)]
        [[(1,)], [(1,)]]
        >>> answers.of("SELECT 1", [Commit(3, "2024-05-02", "WRITE")], lambda sql: [(3,)])
        [(3,)]
        """
        key = (sql, *((c.version, c.timestamp, c.operation) for c in versions))
        with self._lock:
            known = self._known.get(key)
            if known is None:
                answer = self._known[key] = Future()
                while len(self._known) > MANY:
                    self._known.popitem(last=False)
        if known is not None:
            return known.result()
        try:
            answer.set_result(ask(sql))
        except BaseException as error:
            with self._lock:
                self._known.pop(key, None)
            answer.set_exception(error)
            raise
        return answer.result()


_BY_APPLICATION: dict[str, Answers] = {}


def shared_by(application: str | None) -> Answers:
    """The answers of all sessions of a Spark application; without one those of nobody else."""
    return Answers() if application is None else _BY_APPLICATION.setdefault(application, Answers())
