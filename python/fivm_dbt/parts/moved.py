"""Distances in time give part numbers: the parts of one length between two shifts from a part of another."""

from __future__ import annotations

import re

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.reference import Bound, PartReference
from fivm_dbt.parts.shift import DAY, SECOND, Shift
from fivm_dbt.parts.time_units import LENGTHS

_NAMED: dict[str, Shift] = {str(unit): length for unit, length in LENGTHS.items()}
_DEFAULTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
_WRITTEN = re.compile(r"\s*(\d+)?\s*([a-z]+?)s?\s*")


def length(text: str, key: str) -> Shift:
    """A length as it is configured under ``key``: seconds, a unit, or a number of units. FIVM201 for anything else.

    >>> str(length("2 hours", "fivm_lateness"))
    '2 hours'
    """
    match = _WRITTEN.fullmatch(text.lower())
    if text.strip().isdigit():
        return Shift(0, int(text) * SECOND)
    unit = None if match is None else _NAMED.get(match[2])
    number = 1 if match is None or match[1] is None else int(match[1])
    if unit is None:
        raise FivmError(
            "FIVM201",
            f"{key}: {text!r} is no length of time",
            remedy="write it as a unit or a number of units: 'hour', '15 minutes'",
        )
    return Shift(number * unit.months, number * unit.micros)


def default_length(*distances: Shift | None) -> str:
    """The longest unit of which all distances are whole numbers, up to what is just short of it: a day of none.

    >>> default_length(Shift(0, DAY), Shift(0, 5 * 60 * SECOND)), default_length(Shift(1), Shift(0, -1))
    ('minute', 'month')
    """
    given = [d for d in distances if d is not None]
    has_months = any(d.months for d in given)
    candidates = _DEFAULTS[:3] if has_months else _DEFAULTS[3:]
    return next((name for name in candidates if all(_divides(_NAMED[name], d) for d in given)), "second")


def _divides(unit: Shift, distance: Shift) -> bool:
    """Whether a distance, or the one that is a microsecond longer or shorter, is whole units."""
    if unit.months:
        return distance.months % unit.months == 0 and distance.micros in (-1, 0, 1)
    return distance.months == 0 and any((distance.micros + one) % unit.micros == 0 for one in (0, 1, -1))


def reference(relation: str, own: str, other: str, low: Shift, high: Shift) -> PartReference | None:
    """The parts of ``relation`` from ``low`` after the begin of a part of ``own`` length to ``high`` after its end.

    ``⌊(j × own + low) / other⌋ .. ⌊((j + 1) × own + high) / other⌋``. None where months and days meet.

    >>> str(reference("pings", "day", "minute", Shift(), Shift(0, -1)))
    'pings[j*1440 .. j*1440+1439]'
    """
    mine, theirs = length(own, "batch_size"), length(other, "batch_size")
    aligned = Shift(0, _first_day(own) - _first_day(other))
    low_bound = _bound(mine, theirs, low + aligned)
    high_bound = _bound(mine, theirs, high + mine + aligned)
    if low_bound is None or high_bound is None:
        return None
    return PartReference(relation, low_bound, high_bound)


def _first_day(name: str) -> int:
    """When the part of number zero begins: weeks begin on Mondays."""
    return 4 * DAY if "week" in name else 0


def _bound(own: Shift, other: Shift, offset: Shift) -> Bound | None:
    """``⌊(j × own + offset) / other⌋``."""
    if own.months and other.months:
        # A rest of less than a month counts by its sign alone.
        if abs(offset.micros) >= 28 * DAY:
            return None
        return Bound(own.months, offset.months - (offset.micros < 0), other.months).reduced()
    if own.months or other.months or offset.months:
        return None
    return Bound(own.micros, offset.micros, other.micros).reduced()
