"""Units tell how long periods of time are, and which period a shifted or truncated start is one of."""

from __future__ import annotations

from typing import Literal

from fivm_dbt.parts.shift import DAY, SECOND, Shift

Unit = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"]

COARSE = frozenset({"week", "month", "quarter", "year"})
LENGTHS: dict[Unit, Shift] = {
    "second": Shift(0, SECOND),
    "minute": Shift(0, 60 * SECOND),
    "hour": Shift(0, 3_600 * SECOND),
    "day": Shift(0, DAY),
    "week": Shift(0, 7 * DAY),
    "month": Shift(1),
    "quarter": Shift(3),
    "year": Shift(12),
}
_UNITS: dict[str, Unit] = {
    **{unit: unit for unit in LENGTHS},
    **{f"{unit}s": unit for unit in LENGTHS},
    "dd": "day", "mm": "month", "mon": "month", "yy": "year", "yyyy": "year",
}  # fmt: skip


def unit_named(name: str) -> Unit | None:
    """The unit that SQL calls like this."""
    return _UNITS.get(name.lower())


def length_of(unit: Unit) -> Shift:
    """How long a period is."""
    return LENGTHS[unit]


def unit_of_multiples(micros: int) -> Unit | None:
    """The longest period of UTC that begins at each multiple of a length, counted from 1970.

    >>> unit_of_multiples(300_000_000), unit_of_multiples(7 * 86_400_000_000), unit_of_multiples(1)
    ('minute', 'day', None)
    """
    units: tuple[Unit, ...] = ("day", "hour", "minute", "second")
    return next((u for u in units if micros % LENGTHS[u].micros == 0), None)


def coarser(one: Unit | None, other: Unit) -> Unit:
    """What a start of a period of one unit is when it is truncated to another."""
    order = list(LENGTHS)
    if one is None or one == "week" or other == "week":
        return other
    return max(one, other, key=order.index)


def shifted(unit: Unit | None, by: Shift) -> Unit | None:
    """What the start of a period is when it is shifted: still one, if by whole periods."""
    if unit is None:
        return None
    length = LENGTHS[unit]
    if length.months:
        return unit if not by.micros and by.months % length.months == 0 else None
    return unit if not by.months and by.micros % length.micros == 0 else None
