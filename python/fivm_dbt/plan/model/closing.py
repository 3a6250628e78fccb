"""Rows that nothing may come to any more, by a promised lateness, are not kept (ADR 0082).

With L the lateness of the input and n the newest period that has rows, nothing comes to a period before
``n − ⌈L / length⌉``. Of a view that is read from its changes on alone, such periods are never read again. (ViewDF,
section 5.1.1, on what is no longer needed of old parts.)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from fivm_dbt.parts.length import Length


@dataclass(frozen=True)
class Closing:
    """Of a view with ``buckets`` partitions a period: the last ``periods`` before the newest one stay open.

    That is what ``column`` of ``relation`` is promised, whose rows it has: they come at most ``lateness`` late.
    """

    relation: str
    column: str
    lateness: str
    periods: int
    buckets: int = 1

    @staticmethod
    def of(
        relation: str, column: str, lateness: tuple[str, timedelta], period: Length, buckets: int
    ) -> Closing:
        """The closing of periods of a length, ``lateness`` as it is written and as a span of time.

        >>> two_days = ("2 days", timedelta(days=2))
        >>> Closing.of("m", "ts", two_days, Length.of("day"), 1).periods
        2
        >>> Closing.of("m", "ts", two_days, Length.of("month"), 1).periods
        1
        """
        text, span = lateness
        return Closing(relation, column, text, -(-span // period.shortest), buckets)

    def first_open(self, newest: int) -> int:
        """The first partition that may change yet where ``newest`` is the one of the newest row.

        >>> Closing("m", "ts", "2 days", periods=2, buckets=4).first_open(41)
        32
        """
        return (newest // self.buckets - self.periods) * self.buckets

    @property
    def text(self) -> str:
        """What is kept, for people."""
        promised = f"{self.column} of {self.relation} comes at most {self.lateness} late"
        return f"rows are kept as long as others may come before them: {promised}"
