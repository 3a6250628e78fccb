"""SQL knows time parts: the number of a row's part, and a part's rows as a condition with literals."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import as_type
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import DAYS, FIRST_MONDAY, MONTHS, Length


def instant(moment: datetime, type_: SparkType, zone: str = "UTC") -> exp.Expr:
    """A moment as a literal of a time column's type, of what a clock shows as the one in ``zone`` does.

    As a date it is the first one that does not begin before it: what is compared with it is a bound.
    """
    if type_.is_clock:
        local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        if type_.text == "date":
            text = (local + timedelta(days=1) - timedelta.resolution).date().isoformat()
        else:
            text = local.isoformat(sep=" ")
        return as_type(exp.Literal.string(text), type_.text)
    text, kind = (
        moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat(sep=" ") + "+00:00",
        "timestamp_ltz",
    )
    return as_type(exp.Literal.string(text), kind)


def counted(type_: SparkType, length: Length) -> Length:
    """The length by which parts of a time column begin and end: by the clock, if the column has what a clock shows."""
    return length.by_clock if type_.is_clock else length


def in_parts(column: exp.Expr, type_: SparkType, length: Length, parts: Intervals) -> exp.Expr:
    """``column`` lies in one of the parts."""
    tests, of = [], counted(type_, length)
    for first, last in parts.ranges:
        from_low = exp.GTE(this=column.copy(), expression=instant(of.start_of(first), type_))
        to_high = exp.LT(this=column.copy(), expression=instant(of.end_of(last), type_))
        tests.append(exp.and_(from_low, to_high, copy=False))
    return exp.or_(*tests, copy=False) if tests else exp.false()


def number_of(column: exp.Expr, type_: SparkType, length: Length) -> exp.Expr:
    """The number of the part that a row is in: what :meth:`Length.part_of` gives, whatever the session's zone."""
    if length.is_fixed:
        return floored(_seconds(column, type_), length.many)
    days: exp.Expr = _local_days(column, type_, length.zone)
    if length.unit in DAYS:
        shifted = (
            exp.paren(exp.Sub(this=days, expression=whole(FIRST_MONDAY))) if length.unit == "week" else days
        )
        return floored(shifted, length.many * DAYS[length.unit])
    first = exp.cast(exp.Literal.string("1970-01-01"), "date")
    day = exp.func("date_add", first, as_type(days, "int"), dialect="spark")
    since_1970 = exp.Sub(this=exp.Year(this=day), expression=exp.Literal.number(1970))
    of_years = exp.Mul(this=exp.paren(since_1970), expression=exp.Literal.number(12))
    months = exp.Add(this=of_years, expression=exp.Sub(this=exp.Month(this=day.copy()), expression=whole(1)))
    return floored(exp.paren(months), length.many * MONTHS[length.unit])


def start_of(part: exp.Expr, length: Length) -> exp.Expr:
    """When a part begins, as :meth:`Length.start_of` gives it, whatever the session's zone."""
    if length.is_fixed:
        return exp.Anonymous(this="TIMESTAMP_SECONDS", expressions=[_times(part, length.many)])
    if length.unit in DAYS:
        days = _times(part, length.many * DAYS[length.unit])
        if length.unit == "week":
            days = exp.Add(this=days, expression=whole(FIRST_MONDAY))
    else:
        first = exp.cast(exp.Literal.string("1970-01-01"), "date")
        months = as_type(_times(part, length.many * MONTHS[length.unit]), "int")
        days = exp.Anonymous(this="UNIX_DATE", expressions=[exp.AddMonths(this=first, expression=months)])
    in_utc = exp.Anonymous(this="TIMESTAMP_SECONDS", expressions=[_times(days, 86_400)])
    if length.zone == "UTC":
        return in_utc
    return exp.Anonymous(this="TO_UTC_TIMESTAMP", expressions=[in_utc, exp.Literal.string(length.zone)])


def _times(value: exp.Expr, many: int) -> exp.Expr:
    """A product of whole numbers, as a bigint: seconds of an int end in 2038."""
    value = as_type(value.copy(), BIGINT.text)
    return value if many == 1 else exp.Mul(this=value, expression=whole(many))


def _seconds(column: exp.Expr, type_: SparkType) -> exp.Expr:
    """Seconds since 1970; of a date or a local time those of its clock, as if it were UTC."""
    if type_.text == "date":
        return _times(exp.Anonymous(this="UNIX_DATE", expressions=[column.copy()]), 86_400)
    if type_.text == "timestamp_ntz":
        day = as_type(column.copy(), "date")
        days = exp.Anonymous(this="UNIX_DATE", expressions=[day])
        total = _times(days, 86_400)
        for name, many in (("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1)):
            unit = exp.func(name, column.copy(), dialect="spark")
            total = exp.Add(this=total, expression=exp.Mul(this=unit, expression=whole(many)))
        return exp.paren(total)
    return exp.Anonymous(this="UNIX_SECONDS", expressions=[column.copy()])


def _local_days(column: exp.Expr, type_: SparkType, zone: str) -> exp.Expr:
    if type_.text == "date":
        return exp.Anonymous(this="UNIX_DATE", expressions=[column.copy()])
    if type_.text == "timestamp_ntz":
        return exp.Anonymous(this="UNIX_DATE", expressions=[as_type(column.copy(), "date")])
    local = exp.Anonymous(this="FROM_UTC_TIMESTAMP", expressions=[column.copy(), exp.Literal.string(zone)])
    return floored(exp.Anonymous(this="UNIX_SECONDS", expressions=[local]), 86_400)


def floored(value: exp.Expr, by: int) -> exp.Expr:
    """``⌊value / by⌋`` as a bigint. The quotient of whole numbers this small is never rounded up to the next one."""
    quotient = value if by == 1 else exp.Floor(this=exp.Div(this=value, expression=whole(by)))
    return as_type(quotient, BIGINT.text)


def whole(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.paren(exp.Neg(this=exp.Literal.number(-value)))


FEW_RANGES = 4
"""So many ranges are conditions on both of their ends. Each repeats what is tested, and Spark rewrites them all."""

MOST_LISTED = 1_000
"""Of more ranges so many numbers are a list."""


def in_numbers(column: exp.Expr, parts: Intervals) -> exp.Expr:
    """A number of a part is one of the parts."""
    if len(parts.ranges) > FEW_RANGES and len(parts) <= MOST_LISTED:
        return exp.In(this=column.copy(), expressions=[whole(part) for part in parts])
    tests = [
        exp.Between(this=column.copy(), low=whole(first), high=whole(last)) for first, last in parts.ranges
    ]
    return exp.or_(*tests, copy=False) if tests else exp.false()
