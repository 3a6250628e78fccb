"""Strings give lengths of time, as Spark reads them: ``'1 hour 30 minutes'``, ``'interval 5 minutes'``."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from fivm_dbt.ir.scalar import Scalar

_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"([+-]?)\s*(\d+(?:\.\d+)?)\s+([a-z]+?)s?(?=\s|$)\s*")


def microseconds(text: str) -> int | None:
    """The microseconds of a length; None for what Spark does not read, and for months, which are not equally long.

    Only seconds may have digits behind the point, up to a microsecond.

    >>> microseconds("1 hour 30 minutes"), microseconds("interval 1.5 seconds"), microseconds("1 month")
    (5400000000, 1500000, None)
    """
    rest = text.strip().lower()
    if rest.startswith("interval "):
        rest = rest[len("interval ") :].lstrip()
    total, position = Decimal(0), 0
    while position < len(rest):
        found = _PART.match(rest, position)
        if found is None or found[3] not in _MICROSECONDS:
            return None
        if "." in found[2] and found[3] != "second":
            return None
        total += Decimal(found[1] + found[2]) * _MICROSECONDS[found[3]]
        position = found.end()
    return int(total) if rest and total == int(total) else None


def interval_length(interval: Scalar) -> int | None:
    """The microseconds of a written interval; None for what is none, and for months.

    >>> interval_length(Scalar.parse("interval '2' hours")), interval_length(Scalar.parse("interval '1 day 2 hours'"))
    (7200000000, 93600000000)
    """
    node = interval.ast()
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    unit = node.args.get("unit")
    if unit is not None and not isinstance(unit, exp.Var):
        return None
    return microseconds(f"{node.this.name} {unit.name}" if unit is not None else node.this.name)
