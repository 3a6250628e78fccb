"""What the checks share: sessions, a gate that holds a writer up, findings."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.one_state_table.state import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT = 120.0
"""Seconds after which a gate opens by itself."""


@dataclass(frozen=True)
class Finding:
    """What a check has seen; one that is not ok fails the run."""

    ok: bool
    text: str


Check = Callable[["Bench"], Iterator[Finding]]


@dataclass
class Bench:
    """A local Spark, and how much the checks that measure shall do."""

    session: SparkSession
    directory: Path
    rounds: int = 4
    rows: int = 1_000_000
    _made: int = field(default=0)

    def state(self, name: str) -> State:
        """A name that nothing has had yet."""
        self._made += 1
        return State(self.session, f"{name}_{self._made}")

    def median(self, run: Callable[[], object]) -> float:
        """Seconds of the median round, the first one left out: Java compiles in it."""
        return median([seconds(run) for _ in range(self.rounds + 1)][1:])

    def noop(self, sql: str) -> None:
        """Run a query to its end, and throw its rows away."""
        self.session.sql(sql).write.format("noop").mode("overwrite").save()


class Gate:
    """Holds the statements of a session up in the middle: after their reads have begun and before they commit.

    >>> import tempfile
    >>> gate = Gate(Path(tempfile.mkdtemp()))
    >>> gate.reached.exists(), gate.opened.exists()
    (False, False)
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.reached, self.opened = directory / "reached", directory / "opened"

    def sql(self, session: SparkSession) -> str:
        """An expression that is 'open', once it is."""
        reached, opened, wait = str(self.reached), str(self.opened), WAIT

        def gate(_: str) -> str:
            Path(reached).touch()
            until = time.monotonic() + wait
            while not Path(opened).exists() and time.monotonic() < until:
                time.sleep(0.02)
            return "open"

        session.udf.register("gate", gate, "string")
        return "gate(__fivm_view)"

    def wait(self, writer: Running) -> None:
        """Until a statement stands before the gate."""
        until = time.monotonic() + WAIT
        while not self.reached.exists() and writer.is_alive():
            if time.monotonic() > until:
                raise TimeoutError("no statement came to the gate")
            time.sleep(0.02)

    def open(self) -> None:
        self.opened.touch()


class Running(threading.Thread):
    """A statement in a thread of its own, and how it ended."""

    def __init__(self, session: SparkSession, sql: str, barrier: threading.Barrier | None = None) -> None:
        super().__init__()
        self._session, self._sql, self._barrier = session, sql, barrier
        self.error: str | None = None
        self.start()

    def run(self) -> None:
        if self._barrier is not None:
            self._barrier.wait()
        self.error = error_of(self._session, self._sql)


def error_of(session: SparkSession, sql: str) -> str | None:
    """None if the statement succeeds, else the condition of its error and what our own assert says."""
    return error_in(lambda: session.sql(sql).collect())


def error_in(run: Callable[[], object]) -> str | None:
    """What of Spark's and Delta's errors tells why."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        run()
    except (PySparkException, Py4JJavaError) as error:
        # Conflicts of Delta are no exceptions of pyspark's; their condition stands in brackets.
        text = str(error)
        condition = re.search(r"\[([A-Z_.]{5,})\]", text)
        ours = re.search(r"fivm: the head is not \d+", text) if "USER_RAISED" in text else None
        return " ".join([condition[1] if condition else text[:200], *([ours[0]] if ours else [])])
    return None


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
