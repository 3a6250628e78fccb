"""The times of staged changes are asked for in few rows, and bound reads as literals. So are their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import as_type, column_ast
from fivm_dbt.ir.within import Near, TimeBound
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.shift import DAY
from fivm_dbt.steps.binding import Binding, Span

MAX_RANGES = 16
"""Changes far apart are met in so many ranges at the most: today's rows, and late ones of some days."""

Range = tuple[int | None, int | None]
"""Two times in microseconds, or two numbers; None for an open end."""

_FINE = 8
"""There are two to this number of stretches for each power of two."""

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = ((t - _EPOCH) // _MICROSECOND for t in (datetime(1, 1, 2), datetime(9999, 12, 30)))
_TEXT = re.compile(r"((?!0000)\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?)(?:\.(\d{1,6}))?")
_BEFORE, _BEHIND = re.compile(r"-|0000-|.*\(BC\)$"), re.compile(r"\+|\d{5,}-")
"""Texts of times before the year 1, and behind 9999."""


def times_by_day(staged: str, times: Sequence[tuple[str, SparkType]]) -> list[exp.Select]:
    """Of the n-th column of a staged relation: n, its first and its last time, for each day that it has any of.

    Of numbers it is for each stretch that has some.
    """
    return [_by_day(staged, n, column, type_) for n, (column, type_) in enumerate(times, start=1)]


def spans_of(
    relation: str, times: Sequence[tuple[str, SparkType]], rows: Sequence[Sequence[object]]
) -> tuple[Span, ...]:
    """What the rows of :func:`times_by_day` say of a relation; others are passed over."""
    found = (
        (column, times_of((row[1:3] for row in rows if int(str(row[0])) == n), type_))
        for n, (column, type_) in enumerate(times, start=1)
    )
    return tuple(Span(relation, column, known) for column, known in found if known is not None)


def _by_day(staged: str, number: int, column: str, type_: SparkType) -> exp.Select:
    time = column_ast("", column)
    number_of = exp.alias_(exp.Literal.number(number), "number")
    query = daily(column, type_).from_(exp.to_table(staged, dialect="spark")).select(number_of, append=True)
    query.set("expressions", [query.expressions[-1], *query.expressions[:-1]])
    return query.where(exp.Not(this=exp.Is(this=time, expression=exp.Null())))


def daily(column: str, type_: SparkType) -> exp.Select:
    """The first and the last time of a column, for each day that it has any of; a row of NULLs for rows without one.

    Of numbers it is for each stretch that has some.
    """
    time = column_ast("", column)
    return exp.select(*first_and_last(time, type_)).group_by(_day(time, type_))


def first_and_last(column: exp.Expr, type_: SparkType) -> list[exp.Expr]:
    """The least and the greatest value of a column as texts that are the same in every time zone."""
    ends = (exp.Min(this=column.copy()), exp.Max(this=column.copy()))
    return [as_type(_number(end) if _is_instant(type_) else end, "string") for end in ends]


def _day(column: exp.Expr, type_: SparkType) -> exp.Expr:
    if type_.is_integral:
        return _stretch(column)
    if _is_instant(type_):
        return exp.Floor(this=exp.Div(this=_number(column.copy()), expression=exp.Literal.number(DAY)))
    return as_type(column.copy(), "date")


def _stretch(number: exp.Expr) -> exp.Expr:
    """Some hundred stretches between a power of two and the next one: numbers that are counted up are of one power."""
    value = as_type(number, "double")
    magnitude = exp.Add(this=exp.Abs(this=value), expression=exp.Literal.number(1))
    power = exp.Floor(this=exp.Anonymous(this="LOG2", expressions=[magnitude]))
    length = exp.Pow(
        this=exp.Literal.number(2), expression=exp.Sub(this=power, expression=exp.Literal.number(_FINE))
    )
    return exp.Floor(this=exp.Div(this=value.copy(), expression=length))


def _number(instant: exp.Expr) -> exp.Expr:
    return exp.UnixMicros(this=instant)


def _is_instant(type_: SparkType) -> bool:
    """A local time in a text of such a type does not always tell the instant; the number of its microseconds does."""
    return type_.text == "timestamp"


def times_of(ends: Iterable[Sequence[object]], type_: SparkType) -> Intervals | None:
    """The times, or numbers, between pairs of texts, in a few ranges. None where a text is none of these.

    Times before those that a literal can say are the last one of them, and times behind them the first one.

    >>> found = times_of([("0000-12-31", "0001-01-01"), ("1970-01-01", "1970-01-02")], SparkType("date"))
    >>> found.ranges == ((_FIRST - 1, _FIRST - 1), (0, DAY)), times_of([("?", "?")], SparkType("date"))
    (True, None)
    """
    found = []
    for first, last in ends:
        if first is None or last is None:
            continue
        pair = (_micros(str(first), type_), _micros(str(last), type_))
        if pair[0] is None or pair[1] is None:
            return None
        found.append((pair[0], pair[1]))
    return Intervals.of(*found).at_most(MAX_RANGES)


def _micros(text: str, type_: SparkType) -> int | None:
    if type_.is_integral:
        return int(text)
    if _is_instant(type_):
        value = int(text)
    elif (match := _TEXT.fullmatch(text)) is not None:
        seconds, fraction = match.groups(default="0")
        value = (datetime.fromisoformat(seconds) - _EPOCH) // _MICROSECOND + int(fraction.ljust(6, "0"))
    elif _BEFORE.match(text) or _BEHIND.match(text):
        value = _FIRST - 1 if _BEFORE.match(text) else _LAST + 1
    else:
        return None
    return min(max(value, _FIRST - 1), _LAST + 1)


def near_changes(bounds: Iterable[TimeBound], binding: Binding) -> list[exp.Expr]:
    """The conditions of a read on its own columns, with literals for the times of this refresh's changes."""
    tests = (_test(bound, binding) for bound in bounds)
    return [test for test in tests if test is not None]


def _test(bound: TimeBound, binding: Binding) -> exp.Expr | None:
    """``column`` in one of few ranges; None where nothing is known of it in this refresh."""
    ranges: list[Range] = []
    for near in bound.near:
        times = binding.span(near.relation, near.column)
        if times is None:
            return None
        ranges += _moved(near, times)
    return in_ranges(bound.column, bound.type, ranges, or_null=bound.may_be_null)


def in_ranges(name: str, type_: SparkType, ranges: Iterable[Range], *, or_null: bool) -> exp.Expr | None:
    """That a column lies in one of few ranges, which may be open; None where that is any time."""
    given = list(ranges)
    closed = Intervals.of(*((a, b) for a, b in given if a is not None and b is not None)).at_most(MAX_RANGES)
    column = column_ast("", name)
    tests: list[exp.Expr] = []
    for low, high in (*closed.ranges, *dict.fromkeys(r for r in given if None in r)):
        test = _between(column, low, high, type_)
        if test is None:
            return None
        tests.append(test)
    if or_null:
        tests.append(exp.Is(this=column.copy(), expression=exp.Null()))
    if not tests:
        return exp.Boolean(this=False)
    return exp.paren(exp.or_(*tests)) if len(tests) > 1 else tests[0]


def _moved(near: Near, times: Intervals) -> list[Range]:
    """The ranges around the times of a change; where one end is open they are one."""
    if not times:
        return []
    if near.low is None or near.high is None:
        low = None if near.low is None else times.first + near.low
        high = None if near.high is None else times.last + near.high
        return [(low, high)]
    return [(first + near.low, last + near.high) for first, last in times.ranges]


def _between(column: exp.Expr, low: int | None, high: int | None, type_: SparkType) -> exp.Expr | None:
    """``column`` from ``low`` to ``high``; None where both are beyond what literals can say."""
    tests: list[exp.Expr] = []
    is_number = type_.is_integral
    if low is not None and (is_number or _FIRST <= low <= _LAST):
        tests.append(exp.GTE(this=column.copy(), expression=_literal(low, type_, is_low=True)))
    if high is not None and (is_number or _FIRST <= high <= _LAST):
        tests.append(exp.LTE(this=column.copy(), expression=_literal(high, type_, is_low=False)))
    if not tests:
        return None
    return exp.paren(exp.and_(*tests)) if len(tests) > 1 else tests[0]


def _literal(micros: int, type_: SparkType, *, is_low: bool) -> exp.Expr:
    """A time as a literal of a column's type; of days the first one not before it, or the last one not after it."""
    if type_.is_integral:
        return _typed(str(micros), "bigint")
    if type_.text == "date":
        micros = (-(-micros // DAY) if is_low else micros // DAY) * DAY
    time = _EPOCH + timedelta(microseconds=micros)
    if type_.text == "date":
        return _typed(time.date().isoformat(), "date")
    if _is_instant(type_):
        return _typed(time.replace(tzinfo=timezone.utc).isoformat(sep=" "), "timestamp_ltz")
    return _typed(time.isoformat(sep=" "), "timestamp_ntz")


def _typed(text: str, type_: str) -> exp.Expr:
    return as_type(exp.Literal.string(text), type_)
