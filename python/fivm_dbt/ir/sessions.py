"""A session holds rows of a key between which no more than a gap of time goes by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.node import Field, Item, listed
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.window import Window

SESSION_START, SESSION_LAST, SESSION_UNTIL = "session_start_us", "session_last_us", "session_until_us"


@dataclass(frozen=True, kw_only=True)
class Sessions(Window):
    """The ``items`` of each row, with ``bounds`` of its session in microseconds since 1970.

    A row at time t belongs to the session of the row before it, of the same ``partition``, if that was no longer than
    ``gap`` ago; a session ends a gap after its last row. ``at`` is the time of a row in microseconds; it is not NULL.
    Local to ``partition``, as window functions are (it is a Window to everything but SQL). With ``near`` the block of a
    row and the day of that stand behind the ``keys`` there, and sessions go on across blocks.

    One row more at the end of a session changes its end, and would change all of its rows. So there are, besides its
    start, the *last*: the end, but of the last rows alone, and NULL of all others; and the *until*, which is no earlier
    than the end and moves only when a session has become twice as long:

    ``until = start + gap · 2^n``, with n the number of binary digits of ``⌊(end − start − 1) / gap⌋``
    """

    kind = "sessions"
    has_frames = False

    at: Scalar
    gap: int
    bounds: tuple[str, ...] = (SESSION_START, SESSION_LAST)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(self.at)

    @property
    def keys(self) -> tuple[Item, ...]:
        """What tells apart rows that are never in one session."""
        return self.partition if self.near is None else self.partition[:-2]

    @property
    def used(self) -> frozenset[ColumnId]:
        return super().used | self.at.columns

    @property
    def is_of_own_rows(self) -> bool:
        return self.near is not None

    @property
    def goes_by_time(self) -> bool:
        return True

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (*super().fields, *(Field(self.alias, name, BIGINT) for name in self.bounds))

    def only(self, needed: frozenset[ColumnId]) -> Sessions:
        """Without bounds that nobody needs; the start stays, which tells sessions apart."""
        bounds = tuple(n for n in self.bounds if n == SESSION_START or (self.alias, n) in needed)
        narrow = super().only(needed)
        assert isinstance(narrow, Sessions)
        return replace(narrow, bounds=bounds)

    @property
    def described(self) -> str:
        by = ", ".join(i.value.sql for i in self.keys) or "nothing"
        bounds = ", ".join(self.bounds)
        return f"Sessions {self.alias} by {by} order {self.at.sql} gap {self.gap} [{listed(self.items)}] {bounds}"
