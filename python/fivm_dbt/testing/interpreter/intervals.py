"""Intervals move days and times, and are added to each other."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import constant, reads, uses
from fivm_dbt.testing.interpreter.scope import Context, Expression, strict
from fivm_dbt.testing.interpreter.types import DATE, DAYTIME, TIMESTAMP, YEARMONTH
from fivm_dbt.testing.interpreter.values import as_timestamp, months_added

_SECONDS: dict[str, Decimal | int] = {"DAY": 86400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1, "WEEK": 604800}
_SECONDS |= {"MILLISECOND": Decimal("0.001"), "MICROSECOND": Decimal("0.000001")}


@reads(exp.Interval)
def interval(node: exp.Expr, context: Context) -> Expression:
    unit, text = node.args.get("unit"), node.this
    if unit is None or not isinstance(text, (exp.Literal, exp.Neg)):
        raise NotUnderstood("an interval that is not one number with a unit", node)
    written = f"-{text.this.name}" if isinstance(text, exp.Neg) else text.name
    if isinstance(unit, exp.IntervalSpan):
        return _span(written, unit.this.name.upper(), unit.expression.name.upper(), node)
    name = unit.name.upper().rstrip("S")
    try:
        number = Decimal(written.strip())
    except ArithmeticError:
        raise NotUnderstood("an interval that is not one number with a unit", node) from None
    if name in ("YEAR", "QUARTER", "MONTH"):
        return constant(int(number) * {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[name], YEARMONTH)
    if name not in _SECONDS:
        raise NotUnderstood(f"INTERVAL {name}", node)
    return constant(timedelta(microseconds=int(number * Decimal(_SECONDS[name]) * 10**6)), DAYTIME)


uses(exp.Interval, "this", "unit")


def _span(text: str, start: str, end: str, node: exp.Expr) -> Expression:
    sign = -1 if text.strip().startswith("-") else 1
    numbers = re.findall(r"\d+(?:\.\d+)?", text)
    if (start, end) == ("YEAR", "MONTH") and len(numbers) == 2:
        return constant(sign * (int(numbers[0]) * 12 + int(numbers[1])), YEARMONTH)
    units = ["DAY", "HOUR", "MINUTE", "SECOND"]
    if start not in units or end not in units:
        raise NotUnderstood(f"INTERVAL {start} TO {end}", node)
    wanted = units[units.index(start) : units.index(end) + 1]
    if len(wanted) != len(numbers):
        raise NotUnderstood(f"INTERVAL {start} TO {end}", node)
    seconds = sum(Decimal(n) * _SECONDS[u] for n, u in zip(numbers, wanted, strict=True))
    return constant(timedelta(microseconds=int(sign * seconds * 10**6)), DAYTIME)


def with_times(kind: type[exp.Expr], left: Expression, right: Expression, node: exp.Expr) -> Expression:
    """Days, times and intervals, added and subtracted."""
    sign = -1 if kind is exp.Sub else 1
    a, b = left.type, right.type
    if kind is exp.Add and (b.is_time and not a.is_time):
        return with_times(kind, right, left, node)
    if kind in (exp.Add, exp.Sub) and a.is_time:
        if b.is_integral and a == DATE:
            return strict(DATE, lambda d, n: d + timedelta(days=sign * n), left, right)
        if b == YEARMONTH:
            return strict(a, lambda d, n: months_added(d, sign * n), left, right)
        if b == DAYTIME:
            whole = a == DATE and _is_of_days(node)
            result = DATE if whole else (TIMESTAMP if a == DATE else a)
            add = (lambda d, n: d + sign * n) if whole else (lambda d, n: as_timestamp(d) + sign * n)
            return strict(result, add, left, right)
        if kind is exp.Sub and b.is_time and "string" not in (a.name, b.name):
            return strict(DAYTIME, lambda x, y: as_timestamp(x) - as_timestamp(y), left, right)
    if kind in (exp.Add, exp.Sub) and a == b and a in (DAYTIME, YEARMONTH):
        return strict(a, lambda x, y: x + sign * y, left, right)
    if kind is exp.Mul and b in (DAYTIME, YEARMONTH) and a.is_integral:
        left, right, a, b = right, left, b, a
    if kind is exp.Mul and a in (DAYTIME, YEARMONTH) and b.is_integral:
        return strict(a, lambda x, y: x * y, left, right)
    raise NotUnderstood(f"{kind.__name__} of {a} and {b}", node)


def _is_of_days(node: exp.Expr) -> bool:
    """Whether the interval beside a date is one of whole days, so that the result is a date."""
    intervals = list(node.find_all(exp.Interval))
    if not intervals:
        raise NotUnderstood("a date and an interval that is not written down", node)
    return all(
        i.args.get("unit") is not None and i.args["unit"].name.upper().rstrip("S") in ("DAY", "WEEK")
        for i in intervals
    )
