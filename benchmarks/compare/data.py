"""Data sets and how they change: what the benchmarks of TPC-H and of flights have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

PERCENTS = (0.01, 0.1, 1, 10, 50)
"""So many percent of the newest facts are new or changed."""

NEW_KEYS = 1_000_000_000
"""Between the keys of facts that come in one round and in the next."""

FEED = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


class Runs(Protocol):
    """A session, as far as tables and their changes need one."""

    def sql(self, text: str, /) -> object:
        """Run a statement."""


@dataclass(frozen=True)
class Change:
    """What happens to the tables of a data set between two refreshes; each round of it happens to other rows."""

    name: str
    make: Callable[[Runs, int], None]


@dataclass(frozen=True)
class Data:
    """Tables in a schema of their own.

    ``load`` creates them at a scale factor. ``changes`` come in this order: those of many rows last, as they make
    the tables larger.
    """

    schema: str
    tables: tuple[str, ...]
    load: Callable[[Runs, float], None]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Recent:
    """Which facts a change of the last days is about: of each day as many, by ``days`` and by one of ``each``.

    >>> Recent.of(0.1, date(1998, 8, 2), 2406)
    Recent(since=datetime.date(1998, 8, 2), each=1)
    >>> Recent.of(0.01, date(1998, 8, 2), 2406)
    Recent(since=datetime.date(1998, 8, 2), each=8)
    """

    since: date
    each: int

    @staticmethod
    def of(percent: float, last: date, days: int) -> Recent:
        """Half of so many percent of the facts, where there are facts of so many days up to ``last``."""
        share = percent / 100 / 2
        touched = max(1, round(share * days))
        return Recent(last - timedelta(days=touched - 1), max(1, round(touched / days / share)))

    def where(self, key: str, day: str, round_: int) -> str:
        """The condition; facts that an earlier change has brought are left alone."""
        chosen = f"pmod({key}, {self.each}) = {round_ % self.each}"
        return f"{key} < {NEW_KEYS} AND {day} >= date '{self.since}' AND {chosen}"


def moved_by(percent: float, round_: int) -> int:
    """What is added to the keys of copies: another number for each change of each round."""
    return NEW_KEYS * (10 * round_ + PERCENTS.index(percent))


def nothing(session: Runs, round_: int) -> None:
    """Nothing changes."""
