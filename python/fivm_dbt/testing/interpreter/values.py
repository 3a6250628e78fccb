"""Values are equal or not, come first or last, and fit a type or not."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cmp_to_key
from typing import Any

from fivm_dbt.testing.interpreter.types import BITS, Type

Value = Any
Row = tuple[Value, ...]

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
"""Arithmetic of decimals before the result is brought to its type."""


class MapValue(tuple[tuple[Value, Value], ...]):
    """A map as its pairs, in the order in which they were put in."""

    def get(self, key: Value) -> Value:
        return next((v for k, v in self if equal(k, key)), None)


def wrapped(value: int, type_: Type) -> int:
    """An integer as its type holds it: what does not fit wraps around."""
    bits = BITS[type_.name]
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def fits(value: int, type_: Type) -> bool:
    return wrapped(value, type_) == value


def rounded(value: Decimal, type_: Type) -> Decimal | None:
    """A decimal as its type holds it, rounded half up; NULL where it has too many digits."""
    precision, scale = type_.args
    result = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=EXACT)
    return result if abs(result) < Decimal(10) ** (precision - scale) else None


def single(value: float) -> float:
    """The nearest 32-bit number."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def key(value: Value) -> Value:
    """Equal for values that GROUP BY takes for one: NaN is itself, 0.0 is -0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else ("float", value + 0.0)
    if isinstance(value, tuple):
        return tuple(key(v) for v in value)
    if isinstance(value, bool):
        return ("boolean", value)
    return value


def row_key(row: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(key(v) for v in row)


def compare(left: Value, right: Value) -> int:
    """Less than zero where ``left`` comes first. NaN is greater than all numbers, NULL inside a value is first."""
    if isinstance(left, float) or isinstance(right, float):
        nans = (isinstance(left, float) and math.isnan(left), isinstance(right, float) and math.isnan(right))
        if any(nans):
            return int(nans[0]) - int(nans[1])
    if isinstance(left, tuple):
        for a, b in zip(left, right, strict=False):
            order = int(a is not None) - int(b is not None) if a is None or b is None else compare(a, b)
            if order:
                return order
        return len(left) - len(right)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return int(left > right) - int(left < right)


def equal(left: Value, right: Value) -> bool:
    return compare(left, right) == 0


def sorted_rows(rows: Sequence[Any], orders: Sequence[tuple[int, bool, bool]], values: Any) -> list[Any]:
    """Rows in order. ``values`` gives a row's sort values; ``orders`` are (index, descending, nulls first)."""

    def before(left: Any, right: Any) -> int:
        for index, descending, nulls_first in orders:
            a, b = left[0][index], right[0][index]
            if a is None or b is None:
                order = int(a is not None) - int(b is not None)
                order = order if nulls_first else -order
            else:
                order = -compare(a, b) if descending else compare(a, b)
            if order:
                return order
        return 0

    return [row for _, row in sorted(((values(r), r) for r in rows), key=cmp_to_key(before))]


def peers(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return row_key(left) == row_key(right)


def months_added(value: date, months: int) -> date:
    """A day or time so many months later, at the end of the month at most."""
    count = value.year * 12 + value.month - 1 + months
    year, month = divmod(count, 12)
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def as_timestamp(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
