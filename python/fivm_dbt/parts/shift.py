"""Distances in time are upper bounds: what lies how much later than what at the most (ViewDF, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000
DAY = 86_400 * SECOND
_LONGEST_MONTH, _SHORTEST_MONTH = 31, 28
_NAMES = ((DAY, "day"), (3_600 * SECOND, "hour"), (60 * SECOND, "minute"), (SECOND, "second"))


@dataclass(frozen=True)
class Shift:
    """``months`` and ``micros`` (microseconds), and up to ``slack`` microseconds more where a time zone decides.

    As a bound ``x - y ≤ shift`` it is read by its largest value: a month has 31 days where it is added and 28 where it
    is subtracted.

    >>> Shift(months=1).most // DAY, Shift(months=-1).most // DAY
    (31, -28)
    """

    months: int = 0
    micros: int = 0
    slack: int = 0

    @property
    def most(self) -> int:
        """The largest value in microseconds."""
        days = _LONGEST_MONTH if self.months > 0 else _SHORTEST_MONTH
        return self.months * days * DAY + self.micros + self.slack

    def __add__(self, other: Shift) -> Shift:
        """Both one after the other: the largest values add up, also where a month less a month is up to three days."""
        nominal = Shift(self.months + other.months, self.micros + other.micros)
        return Shift(nominal.months, nominal.micros, self.most + other.most - nominal.most)

    @property
    def is_nothing(self) -> bool:
        """Whether it is no distance, apart from what a time zone decides."""
        return not self.months and not self.micros

    def __str__(self) -> str:
        """In words, without its slack: ``1 month 3 days``, with a sign where it is negative."""
        return " ".join(part for part in (_words(self.months, "month"), duration(self.micros)) if part) or "0"


def duration(micros: int) -> str:
    """Microseconds in words, in the largest unit that they are whole numbers of; nothing for none.

    >>> duration(90 * 60 * SECOND), duration(-DAY), duration(SECOND // 2)
    ('90 minutes', '-1 day', '0.5 seconds')
    """
    for length, name in _NAMES:
        if micros % length == 0:
            return _words(micros // length, name)
    return f"{micros / SECOND:g} seconds"


def _words(number: int, name: str) -> str:
    return "" if not number else f"{number} {name}" if abs(number) == 1 else f"{number} {name}s"
