"""Functions of dates and times have a session in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, constant_of, converted, reads, uses
from fivm_dbt.testing.interpreter.functions import function
from fivm_dbt.testing.interpreter.scope import Context, Expression, strict
from fivm_dbt.testing.interpreter.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    NTZ,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
)
from fivm_dbt.testing.interpreter.values import Value, as_timestamp, months_added

_EPOCH = datetime(1970, 1, 1)


def day(argument: Expression, node: exp.Expr) -> Expression:
    if not (argument.type.is_time or argument.type in (STRING, NULL)):
        raise NotUnderstood(f"{node.name} of {argument.type}", node)
    return converted(argument, DATE)


def moment(argument: Expression, node: exp.Expr) -> Expression:
    if argument.type == NTZ:
        return argument
    if not (argument.type.is_time or argument.type in (STRING, NULL)):
        raise NotUnderstood(f"{node.name} of {argument.type}", node)
    return converted(argument, TIMESTAMP)


_DAYS: dict[str, Callable[[date], int]] = {
    "YEAR": lambda d: d.year,
    "QUARTER": lambda d: (d.month + 2) // 3,
    "MONTH": lambda d: d.month,
    "DAY": lambda d: d.day,
    "DAYOFMONTH": lambda d: d.day,
    "DAYOFWEEK": lambda d: d.isoweekday() % 7 + 1,
    "DOW": lambda d: d.isoweekday() % 7 + 1,
    "WEEKDAY": lambda d: d.weekday(),
    "DAYOFYEAR": lambda d: d.timetuple().tm_yday,
    "DOY": lambda d: d.timetuple().tm_yday,
    "WEEKOFYEAR": lambda d: d.isocalendar()[1],
    "WEEK": lambda d: d.isocalendar()[1],
}
_TIMES: dict[str, Callable[[datetime], int]] = {
    "HOUR": lambda t: t.hour,
    "MINUTE": lambda t: t.minute,
    "SECOND": lambda t: t.second,
}


@function(*(n for n in _DAYS if n not in ("DOW", "DOY", "WEEK")))
def part_of_day(arguments: list[Expression], node: exp.Expr) -> Expression:
    return strict(INT, _DAYS[node.name], day(arguments[0], node))


@function(*_TIMES)
def part_of_time(arguments: list[Expression], node: exp.Expr) -> Expression:
    return strict(INT, _TIMES[node.name], moment(arguments[0], node))


@reads(exp.Extract)
def extract(node: exp.Expr, context: Context) -> Expression:
    return _extracted(node.name.upper(), compile_expression(node.expression, context), node)


@function("DATE_PART", "DATEPART")
def date_part(arguments: list[Expression], node: exp.Expr) -> Expression:
    return _extracted(str(constant_of(arguments[0], node.expressions[0])).upper(), arguments[1], node)


def _extracted(part: str, value: Expression, node: exp.Expr) -> Expression:
    if not (value.type.is_time or value.type == STRING):
        raise NotUnderstood(f"EXTRACT from {value.type}", node)
    if part in _DAYS:
        return strict(INT, _DAYS[part], day(value, node))
    if part == "SECOND":
        exact = decimal(8, 6)
        return strict(
            exact, lambda t: Decimal(t.second) + Decimal(t.microsecond).scaleb(-6), moment(value, node)
        )
    if part in _TIMES:
        return strict(INT, _TIMES[part], moment(value, node))
    raise NotUnderstood(f"EXTRACT {part}", node)


uses(exp.Extract, "this", "expression")


@function("DATE_ADD", "DATEADD", "DATE_SUB")
def date_add(arguments: list[Expression], node: exp.Expr) -> Expression:
    if len(arguments) != 2 or not arguments[1].type.is_integral:
        raise NotUnderstood(f"{node.name} of {arguments[1].type}", node)
    sign = -1 if node.name == "DATE_SUB" else 1
    return strict(DATE, lambda d, n: d + timedelta(days=sign * n), day(arguments[0], node), arguments[1])


@function("DATEDIFF", "DATE_DIFF")
def datediff(arguments: list[Expression], node: exp.Expr) -> Expression:
    if len(arguments) != 2:
        raise NotUnderstood(f"{node.name} by a unit", node)
    return strict(INT, lambda a, b: (a - b).days, *(day(a, node) for a in arguments))


@function("ADD_MONTHS")
def add_months(arguments: list[Expression], node: exp.Expr) -> Expression:
    return strict(DATE, months_added, day(arguments[0], node), converted(arguments[1], INT))


def last_of_month(value: date) -> date:
    return months_added(value.replace(day=1), 1) - timedelta(days=1)


@function("LAST_DAY")
def last_day(arguments: list[Expression], node: exp.Expr) -> Expression:
    return strict(DATE, last_of_month, day(arguments[0], node))


@function("MONTHS_BETWEEN")
def months_between(arguments: list[Expression], node: exp.Expr) -> Expression:
    """Whole months between equal days or two ends of months, else a month has 31 days; to eight digits."""
    if len(arguments) > 2:
        raise NotUnderstood("MONTHS_BETWEEN without rounding", node)

    def of(a: Value, b: Value) -> float:
        months = (a.year - b.year) * 12 + a.month - b.month
        if a.day == b.day or all(v.day == last_of_month(v.date()).day for v in (a, b)):
            return float(months)
        seconds = (a - a.replace(day=1, hour=0, minute=0, second=0)) - (
            b - b.replace(day=1, hour=0, minute=0, second=0)
        )
        return round(float(months + seconds / timedelta(days=31)), 8)

    return strict(DOUBLE, of, *(moment(a, node) for a in arguments))


_YEARS, _QUARTERS, _MONTHS = ("YEAR", "YYYY", "YY"), ("QUARTER",), ("MONTH", "MM", "MON")


def _truncated_day(unit: str, value: Value) -> Value:
    if unit in _YEARS:
        return value.replace(month=1, day=1)
    if unit in _QUARTERS:
        return value.replace(month=(value.month - 1) // 3 * 3 + 1, day=1)
    if unit in _MONTHS:
        return value.replace(day=1)
    if unit == "WEEK":
        return value - timedelta(days=value.weekday())
    return None


@function("TRUNC")
def trunc(arguments: list[Expression], node: exp.Expr) -> Expression:
    unit = str(constant_of(arguments[1], node.expressions[1])).upper()
    return strict(DATE, lambda d: _truncated_day(unit, d), day(arguments[0], node))


@function("DATE_TRUNC")
def date_trunc(arguments: list[Expression], node: exp.Expr) -> Expression:
    unit = str(constant_of(arguments[0], node.expressions[0])).upper()
    value = moment(arguments[1], node)

    def of(t: datetime) -> Value:
        midnight = t.replace(hour=0, minute=0, second=0, microsecond=0)
        smaller = {
            "DAY": midnight,
            "DD": midnight,
            "HOUR": t.replace(minute=0, second=0, microsecond=0),
            "MINUTE": t.replace(second=0, microsecond=0),
            "SECOND": t.replace(microsecond=0),
            "MICROSECOND": t,
            "MILLISECOND": t.replace(microsecond=t.microsecond // 1000 * 1000),
        }
        return smaller[unit] if unit in smaller else _truncated_day(unit, midnight)

    return strict(TIMESTAMP, of, value)


_LETTERS = {
    "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "ms", "SSSSSS": "%f",
    "M": "M", "d": "d", "y": "y", "yy": "%y", "EEEE": "%A", "E": "%a", "MMM": "%b", "MMMM": "%B",
}  # fmt: skip


def _pieces(written: str) -> list[str]:
    found = [m.group() for m in re.finditer(r"'[^']*'|([a-zA-Z])\1*|[^a-zA-Z']+", written)]
    for piece in found:
        if piece[0].isalpha() and piece not in _LETTERS:
            raise NotUnderstood(f"letters {piece} of a time")
    return found


def formatted(value: datetime, written: str) -> str:
    parts = []
    for piece in _pieces(written):
        plain = {"M": value.month, "d": value.day, "y": value.year}
        if not piece[0].isalpha():
            parts.append(piece.strip("'") if piece != "''" else "'")
        elif piece in plain:
            parts.append(str(plain[piece]))
        elif piece == "SSS":
            parts.append(f"{value.microsecond // 1000:03d}")
        elif piece == "yyyy":
            parts.append(f"{value.year:04d}")
        else:
            parts.append(value.strftime(_LETTERS[piece]))
    return "".join(parts)


_READ = {"yyyy": r"(?P<y>\d{4})", "MM": r"(?P<m>\d{2})", "dd": r"(?P<d>\d{2})", "HH": r"(?P<H>\d{2})",
         "mm": r"(?P<M>\d{2})", "ss": r"(?P<S>\d{2})", "M": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})",
         "SSS": r"(?P<f>\d{3})"}  # fmt: skip


def parsed(text: str, written: str) -> datetime | None:
    """A text read by a pattern, the whole of it."""
    parts = []
    for piece in _pieces(written):
        if piece[0].isalpha() and piece not in _READ:
            raise NotUnderstood(f"letters {piece} of a time to be read")
        parts.append(_READ.get(piece) or re.escape(piece.strip("'")))
    found = re.fullmatch("".join(parts), text)
    if not found:
        return None
    got = {k: int(v) for k, v in found.groupdict().items()}
    micro = got.get("f", 0) * 1000
    try:
        return datetime(
            got.get("y", 1970),
            got.get("m", 1),
            got.get("d", 1),
            got.get("H", 0),
            got.get("M", 0),
            got.get("S", 0),
            micro,
        )
    except ValueError:
        return None


@function("DATE_FORMAT")
def date_format(arguments: list[Expression], node: exp.Expr) -> Expression:
    written = str(constant_of(arguments[1], node.expressions[1]))
    _pieces(written)
    return strict(STRING, lambda t: formatted(t, written), moment(arguments[0], node))


@function("TO_DATE", "TO_TIMESTAMP", "TRY_TO_TIMESTAMP", "TRY_TO_DATE")
def to_time(arguments: list[Expression], node: exp.Expr) -> Expression:
    type_ = DATE if node.name.endswith("DATE") else TIMESTAMP
    if len(arguments) == 1:
        return converted(arguments[0], type_)
    written = str(constant_of(arguments[1], node.expressions[1]))
    if arguments[0].type != STRING:
        return converted(arguments[0], type_)

    def of(text: str) -> Value:
        found = parsed(text, written)
        return found.date() if found is not None and type_ == DATE else found

    return strict(type_, of, arguments[0])


@function("UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP")
def unix_timestamp(arguments: list[Expression], node: exp.Expr) -> Expression:
    if len(arguments) != 1 or not arguments[0].type.is_time:
        raise NotUnderstood(f"{node.name} of a text", node)
    return strict(BIGINT, lambda t: (t - _EPOCH) // timedelta(seconds=1), moment(arguments[0], node))


_UNITS = {"UNIX_SECONDS": 1, "UNIX_MILLIS": 10**3, "UNIX_MICROS": 10**6}


@function(*_UNITS)
def unix_units(arguments: list[Expression], node: exp.Expr) -> Expression:
    per = _UNITS[node.name]
    return strict(
        BIGINT, lambda t: (t - _EPOCH) // timedelta(microseconds=1) * per // 10**6, moment(arguments[0], node)
    )


@function("UNIX_DATE")
def unix_date(arguments: list[Expression], node: exp.Expr) -> Expression:
    return strict(INT, lambda d: (as_timestamp(d) - _EPOCH).days, day(arguments[0], node))


@function("TIMESTAMP_SECONDS", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS")
def timestamp_units(arguments: list[Expression], node: exp.Expr) -> Expression:
    micro = {"SECONDS": 10**6, "MILLIS": 10**3, "MICROS": 1}[node.name.split("_")[1]]
    if not arguments[0].type.is_integral:
        raise NotUnderstood(f"{node.name} of {arguments[0].type}", node)
    return strict(TIMESTAMP, lambda n: _EPOCH + timedelta(microseconds=n * micro), arguments[0])


@function("MAKE_DATE")
def make_date(arguments: list[Expression], node: exp.Expr) -> Expression:
    def of(y: int, m: int, d: int) -> date | None:
        try:
            return date(y, m, d)
        except ValueError:
            return None

    return strict(DATE, of, *(converted(a, INT) for a in arguments))


@function("WINDOW_TIME")
def window_time(arguments: list[Expression], node: exp.Expr) -> Expression:
    type_: Type = arguments[0].type.args[1][1]
    return strict(type_, lambda w: w[1] - timedelta(microseconds=1), arguments[0])
