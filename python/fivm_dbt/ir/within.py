"""A time lies within a distance of the times of changed rows: literals let Delta skip files.

Numbers that are counted up are such times: those that are the same are at no distance.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.parts.shift import SECOND, duration


@dataclass(frozen=True)
class Near:
    """``low ≤ value − change.column ≤ high`` for some changed row of ``relation``, in microseconds, or in ones.

    None for an end that nothing is known of. ``type`` is that of the changed column.
    """

    relation: str
    column: str
    type: SparkType
    low: int | None
    high: int | None

    @property
    def is_closed(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    def __str__(self) -> str:
        """The range of a value, in words.

        >>> str(Near("raw.a", "ts", SparkType("timestamp"), -300_000_000, 59_999_999))
        'Δraw.a.ts - 5 minutes .. before Δraw.a.ts + 1 minute'
        """
        name = f"Δ{self.relation}.{self.column}"
        low, high = _seen_from(name, self.low, "after", -1), _seen_from(name, self.high, "before", 1)
        return low if low == high else f"{low} .. {high}".strip()


def _seen_from(name: str, distance: int | None, just: str, microsecond: int) -> str:
    """A distance from a time; one that is a microsecond short of whole seconds ends just before or after these."""
    if distance is None:
        return ""
    word = ""
    if distance % SECOND and (distance + microsecond) % SECOND == 0:
        word, distance = f"{just} ", distance + microsecond
    return word + (
        name if not distance else f"{name} {'-' if distance < 0 else '+'} {duration(abs(distance))}"
    )


@dataclass(frozen=True)
class TimeBound:
    """The rows that can matter have a ``column`` near one of these changes; NULL only where ``may_be_null``."""

    column: str
    type: SparkType
    near: tuple[Near, ...]
    may_be_null: bool

    @property
    def is_closed(self) -> bool:
        """Whether both ends are known near every change."""
        return all(n.is_closed for n in self.near)

    def __str__(self) -> str:
        return f"{self.column} in {' or '.join(str(n) for n in self.near)}{' or NULL' if self.may_be_null else ''}"
