"""What is measured: one run of one way after a change, and all of a run as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.compare.ways import BESIDE, CHOICES, FIVM, TABLE

NOTHING = "none"
"""The change that changes nothing."""

NEAR_THE_BEST = 1.15
"""A choice is as good as the best one up to so many times its seconds."""

DEARER, LONG, LONGER = 1.1, 5.0, 1.0
"""Above the recompute are so many times its seconds, or so many seconds more where it takes less than ``LONG``."""


@dataclass(frozen=True)
class Measured:
    """One run of one way after a change, beside the recompute of the same models.

    ``wrong`` are rows that only one of the two has. ``expected`` were seconds of a refresh, and of a build. The last
    ones are as in ``Ran``.
    """

    query: str
    change: str
    round: int
    way: str
    action: str
    seconds: float
    recompute_seconds: float
    wrong: int
    expected: tuple[float, float] | None = None
    chosen: str = ""
    statements: int | None = None
    rows_read: int | None = None

    @property
    def case(self) -> tuple[str, str, int]:
        return self.query, self.change, self.round

    @property
    def ratio(self) -> float:
        return self.seconds / self.recompute_seconds

    @property
    def differing(self) -> int:
        """Rows that differ though they must not; dbt's incremental models may be wrong."""
        return 0 if self.way in BESIDE[:2] else self.wrong

    @property
    def is_above(self) -> bool:
        """Whether a user would have been better off with a recompute, by more than figures vary."""
        if self.recompute_seconds >= LONG:
            return self.ratio > DEARER
        return self.seconds > self.recompute_seconds + LONGER


@dataclass(frozen=True)
class Results:
    """All of a run; ``machine`` says where it was. ``failures`` are ways that ended in an error."""

    scale: float
    rounds: int
    machine: str
    minutes: float
    measured: tuple[Measured, ...]
    failures: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Results:
        data = json.loads(path.read_text(encoding="utf-8"))
        measured = (Measured(**{**m, "expected": _pair(m["expected"])}) for m in data.pop("measured"))
        failures = tuple(data.pop("failures"))
        return Results(**data, measured=tuple(measured), failures=failures)

    @staticmethod
    def together(parts: Sequence[Results]) -> Results:
        """Of runs of other queries on one machine. ValueError where they cannot be shown as one.

        A ratio is of one run still: all ways of a query are in the same part.
        """
        first, measured = parts[0], [m for part in parts for m in part.measured]
        if any((p.scale, p.rounds, p.machine) != (first.scale, first.rounds, first.machine) for p in parts):
            raise ValueError("they differ in scale factor, rounds or machine")
        twice = [q for n, part in enumerate(parts) for q in part.queries for p in parts[:n] if q in p.queries]
        if twice:
            raise ValueError(f"{twice[0]} is in several of them")
        failures = tuple(failure for part in parts for failure in part.failures)
        return replace(
            first, minutes=sum(p.minutes for p in parts), measured=tuple(measured), failures=failures
        )

    @property
    def ways(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.way for m in self.measured))

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.query for m in self.measured))

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.change for m in self.measured))

    def of(
        self, way: str | None = None, query: str | None = None, change: str | None = None
    ) -> tuple[Measured, ...]:
        """What was measured, with a name for some of these."""
        wanted = {"way": way, "query": query, "change": change}
        return tuple(
            m
            for m in self.measured
            if all(name is None or getattr(m, what) == name for what, name in wanted.items())
        )


def _pair(values: Sequence[float] | None) -> tuple[float, float] | None:
    return None if values is None else (values[0], values[1])


@dataclass(frozen=True)
class Regret:
    """What this package chose, beside the best of what it could have chosen: by another run after the same change."""

    chosen: Measured
    best: str
    best_seconds: float

    @property
    def times(self) -> float:
        return self.chosen.seconds / self.best_seconds

    @property
    def is_near(self) -> bool:
        return self.times <= NEAR_THE_BEST


def regrets(measured: Iterable[Measured]) -> list[Regret]:
    """Of each case that has changed something. A build is taken to cost what the recompute does."""
    return [*_regrets([m for m in measured if m.change != NOTHING])]


def _regrets(measured: Sequence[Measured]) -> Iterator[Regret]:
    for chosen in measured:
        if chosen.way != FIVM:
            continue
        same = [m for m in measured if m.case == chosen.case and m.way in CHOICES and not m.wrong]
        found = [(m.seconds, m.way) for m in same] + [(chosen.recompute_seconds, TABLE)]
        seconds, way = min(found)
        yield Regret(chosen, way, seconds)


def middle(measured: Sequence[Measured]) -> float:
    """The median of the ratios."""
    return median(m.ratio for m in measured)
