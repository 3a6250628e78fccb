"""Values of partitions are written as text, also NULL, '' and what a path cannot hold (ADR 0028).

A letter comes first: ``n`` is NULL, ``v`` a value. So no text is empty or Hive's name for NULL, which Delta confuses,
and none is ``-``, the partition of the tail. Integers, dates and times sort as they do. Dates before the year 0 have
``u`` and those after 9999 ``w``.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DATE, TIMESTAMP
from fivm_dbt.ir.scalar import as_type

DIGITS, COMPLEMENT = "0123456789", "9876543210"
_OF_INTEGERS, _OF_DAYS = 19, 10
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def partition_text(value: exp.Expr, type_: SparkType) -> exp.Expr:
    """The text of a value.

    >>> partition_text(exp.column("p"), SparkType.of("string")).sql("spark")
    "COALESCE(CONCAT('v', p), 'n')"
    """
    return exp.Coalesce(this=_text(value, type_), expressions=[exp.Literal.string("n")])


def partition_time(text: str, type_: SparkType) -> date | datetime | None:
    """The date or the instant that a text says, None for NULL and for days that Python has not.

    >>> partition_time("v2024-05-01", DATE), partition_time("v10000000000000000000", TIMESTAMP)
    (datetime.date(2024, 5, 1), datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))
    """
    if not text.startswith("v"):
        return None
    if type_ == DATE:
        return date.fromisoformat(text[1:])
    return _EPOCH + timedelta(microseconds=partition_number(text))


def partition_number(text: str) -> int:
    """The integer that a text says.

    >>> partition_number("v10000000000000019783"), partition_number("v09999999999999999998")
    (19783, -1)
    """
    is_negative, digits = text[1] == "0", text[2:]
    return -int(digits.translate(str.maketrans(DIGITS, COMPLEMENT))) if is_negative else int(digits)


def number_text(number: int) -> str:
    """The text of an integer.

    >>> number_text(19783), number_text(-1)
    ('v10000000000000019783', 'v09999999999999999998')
    """
    digits = f"{abs(number):0{_OF_INTEGERS}}"
    return "v0" + digits.translate(str.maketrans(DIGITS, COMPLEMENT)) if number < 0 else f"v1{digits}"


def _text(value: exp.Expr, type_: SparkType) -> exp.Expr:
    if type_.is_string:
        return _concat(exp.Literal.string("v"), value)
    if type_.is_integral:
        return _concat(exp.Literal.string("v"), _signed(_string(value), _OF_INTEGERS))
    if type_ == TIMESTAMP:
        # The same in every time zone, and in the hour of a clock change.
        micros = _string(exp.UnixMicros(this=value))
        return _concat(exp.Literal.string("v"), _signed(micros, _OF_INTEGERS))
    if type_ == DATE:
        days = exp.Anonymous(this="UNIX_DATE", expressions=[value.copy()])
        return _by_year(value, _signed(_string(days), _OF_DAYS))
    if type_.text == "timestamp_ntz":
        return _by_year(value, _string(value))
    return _concat(exp.Literal.string("v"), _string(value))


def _by_year(value: exp.Expr, outside: exp.Expr) -> exp.Expr:
    """As Spark writes it where a year has four digits."""
    year = exp.Year(this=value.copy())
    cases = (
        (exp.LT(this=year, expression=exp.Literal.number(0)), "u", outside),
        (exp.GT(this=year.copy(), expression=exp.Literal.number(9999)), "w", outside.copy()),
    )
    ifs = [exp.If(this=test, true=_concat(exp.Literal.string(letter), text)) for test, letter, text in cases]
    return exp.Case(ifs=ifs, default=_concat(exp.Literal.string("v"), _string(value)))


def _signed(text: exp.Expr, digits: int) -> exp.Expr:
    """1 and the digits, or 0 and their complement to nine."""
    absolute = _call("LPAD", _call("REPLACE", text, "-", ""), digits, "0")
    negative = _concat(exp.Literal.string("0"), _call("TRANSLATE", absolute, DIGITS, COMPLEMENT))
    is_negative = exp.Like(this=text.copy(), expression=exp.Literal.string("-%"))
    positive = _concat(exp.Literal.string("1"), absolute.copy())
    return exp.Case(ifs=[exp.If(this=is_negative, true=negative)], default=positive)


def _concat(*parts: exp.Expr) -> exp.Expr:
    return exp.Concat(expressions=[p.copy() for p in parts], coalesce=False, safe=True)


def _string(value: exp.Expr) -> exp.Expr:
    return as_type(value.copy(), "string")


def _call(name: str, first: exp.Expr, *others: str | int) -> exp.Expr:
    rest = [exp.Literal.number(o) if isinstance(o, int) else exp.Literal.string(o) for o in others]
    return exp.Anonymous(this=name, expressions=[first.copy(), *rest])
