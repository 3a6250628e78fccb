"""Seconds of each statement that an engine runs, and what kind of statement it is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fivm_dbt.engines.spark.engine import Answer, Execute, SparkEngine, on_session
from fivm_dbt.engines.spark.own_session import own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fivm_dbt.plan.model.head import Note

Kind = Literal["staged", "queried", "written", "dropped"]

_KINDS: dict[str, Kind] = {
    "CACHE": "staged",
    "DROP": "dropped",
    **dict.fromkeys(("SELECT", "WITH", "DESCRIBE", "SHOW"), "queried"),
}
"""By the first word of a statement; whatever is not listed writes."""


@dataclass(frozen=True)
class Timing:
    """One statement: its first words, with the table that it is about, and wall-clock seconds."""

    statement: str
    seconds: float

    @property
    def kind(self) -> Kind:
        """What it does, by its first word; what is staged is dropped in the end."""
        return _KINDS.get(self.statement.split(" ", 1)[0].upper(), "written")


class Timed:
    """Runs statements and notes the seconds of each, in their order."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self.timings: list[Timing] = []

    def __call__(self, sql: str, *, fetch: bool) -> Answer:
        started = time.perf_counter()
        try:
            return self._execute(sql, fetch=fetch)
        finally:
            self.timings.append(Timing(_shortened(sql), time.perf_counter() - started))

    def taken(self) -> list[Timing]:
        """What was noted since it was last asked for."""
        timings, self.timings = self.timings, []
        return timings


class TimedEngine(SparkEngine):
    """Spark, with the seconds of each statement; what is staged is one."""

    def __init__(self, session: SparkSession) -> None:
        own = own_session(session)
        self._timed = Timed(on_session(own))
        super().__init__(self._timed, own)

    def commit(self, sql: str, note: Note) -> None:
        with self._as_one(sql):
            super().commit(sql, note)

    def stage(self, name: str, sql: str) -> None:
        with self._as_one(f"CACHE TABLE {name} AS {sql}"):
            super().stage(name, sql)

    def stage_all(self, staged: Sequence[tuple[str, str]]) -> None:
        names = " + ".join(name.split("__", 1)[-1] for name, _ in staged)
        with self._as_one(f"CACHE TABLE {names}"):
            super().stage_all(staged)

    @contextmanager
    def _as_one(self, statement: str) -> Iterator[None]:
        """Take what is run within for one statement."""
        before = self._timed.taken()
        started = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            self._timed.timings = [*before, Timing(_shortened(statement), seconds)]

    def taken(self) -> list[Timing]:
        """What was noted since it was last asked for."""
        return self._timed.taken()


def _shortened(sql: str) -> str:
    return re.sub(r"\s+", " ", sql)[:60]
