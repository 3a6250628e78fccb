"""How much there is of everything, and when: two years of history, and then a week for each batch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

DAY = 86_400
START = datetime(2022, 1, 1, tzinfo=timezone.utc)
"""Times are told in seconds since then; what was there before has negative ones."""

HISTORY = 730 * DAY
BATCH = 7 * DAY
BEFORE = 365 * DAY
"""So long before the first order customers, companies and securities began to come."""

FOREVER_AGO = -10_000 * DAY

_TRADES, _CUSTOMERS, _SECURITIES = 1_000_000, 20_000, 2_000


@dataclass(frozen=True)
class Sizes:
    """Rows at the end of the two years, by a scale; at scale 1 there are a million trades."""

    scale: float

    @property
    def trades(self) -> int:
        return self._of(_TRADES)

    @property
    def cash_transactions(self) -> int:
        return self._of(_TRADES * 4 // 5)

    @property
    def watches(self) -> int:
        return self._of(_TRADES * 2 // 5)

    @property
    def customers(self) -> int:
        """Those who were there when trading began; each also has a change of his data in the two years, on average."""
        return self._of(_CUSTOMERS)

    @property
    def accounts(self) -> int:
        """When trading began."""
        return 2 * self.customers

    @property
    def employees(self) -> int:
        return self._of(_CUSTOMERS // 10)

    @property
    def prospects(self) -> int:
        return self.customers

    @property
    def securities(self) -> int:
        return self._of(_SECURITIES)

    @property
    def companies(self) -> int:
        return max(1, self.securities // 2)

    def _of(self, number: int) -> int:
        return max(20, round(number * self.scale))


@dataclass(frozen=True)
class Span:
    """A stretch of time, in seconds since the start: what comes after ``after`` and not later than ``until``."""

    after: int
    until: int

    @staticmethod
    def of_history() -> Span:
        """All that is there before the first batch."""
        return Span(FOREVER_AGO, HISTORY)

    @staticmethod
    def of_batch(number: int) -> Span:
        """Batches are numbered from 1."""
        return Span(HISTORY + (number - 1) * BATCH, HISTORY + number * BATCH)

    def has(self, column: str) -> str:
        """The condition that a number of seconds is in it."""
        return f"{column} > {self.after} and {column} <= {self.until}"

    def ids(self, gap: float, longest: int = 0) -> str:
        """The ids of what happens each ``gap`` seconds from the start on, and up to ``longest`` seconds before."""
        first = max(0, int((self.after - longest) / gap))
        return f"range({first}, {max(first, int(self.until / gap) + 1)})"

    def comers(self, number: int, share: float) -> str:
        """A subquery of ids and when each comes: so many before the first order, a ``share`` more in two years."""
        gap = HISTORY / number / share
        last = max(number, int(number + self.until / gap) + 1)
        early = f"cast(id * {BEFORE / number / 2!r}D as bigint) - {BEFORE}"
        later = f"cast((id - {number}) * {gap!r}D as bigint)"
        return f"(select id, if(id < {number}, {early}, {later}) as at from range({last}))"


def hashed(of: str, values: int, key: str = "id") -> str:
    """A number below ``values`` that follows from a key, in SQL; another one for each thing that it is ``of``.

    >>> hashed("account", 10)
    "pmod(xxhash64(id, 'account'), 10)"
    """
    return f"pmod(xxhash64({key}, '{of}'), {values})"


def chosen(of: str, *values: str, key: str = "id") -> str:
    """One of several texts, in the same way.

    >>> chosen("color", "red", "blue")
    "element_at(array('red', 'blue'), 1 + cast(pmod(xxhash64(id, 'color'), 2) as int))"
    """
    texts = ", ".join(f"'{value}'" for value in values)
    return f"element_at(array({texts}), 1 + cast({hashed(of, len(values), key)} as int))"


def instant(seconds: str) -> str:
    """The timestamp of some seconds since the start."""
    return f"timestamp_seconds({int(START.timestamp())} + {seconds})"


def month_of(seconds: str) -> str:
    """The month by which facts are partitioned."""
    return f"date_format({instant(seconds)}, 'yyyy-MM')"
