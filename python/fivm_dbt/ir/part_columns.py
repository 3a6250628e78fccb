"""An expression over a row's time gives the number of the time part in which the row lies."""

from __future__ import annotations

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.length import DAYS, FIRST_MONDAY, MONTHS, Length
from fivm_dbt.parts.shift import SECOND

_NEVER = -(10**15)
"""The part of rows without a time, which come first."""
_DAY = 86_400


def part_of(at: Scalar, type_: SparkType, length: Length) -> Scalar:
    """The number of the time part of a row. It does not fall where time goes on: local times of a time zone would."""
    if length.is_fixed:
        number = f"FLOOR(a.s / {length.many})"
    elif length.unit in DAYS:
        first = FIRST_MONDAY if length.unit == "week" else 0
        days = length.many * DAYS[length.unit]
        number = f"FLOOR((FLOOR(a.s / {_DAY}) - {first}) / {days})"
    else:
        months = length.many * MONTHS[length.unit]
        day = f"DATE_ADD(DATE '1970-01-01', CAST(FLOOR(a.s / {_DAY}) AS INT))"
        number = f"FLOOR(((YEAR({day}) - 1970) * 12 + MONTH({day}) - 1) / {months})"
    return _over(f"COALESCE(CAST({number} AS BIGINT), {_NEVER})", {"s": _seconds(at, type_)})


def period_of(at: Scalar, type_: SparkType, length: Length) -> Scalar:
    """The number of the part, or of the day where parts are shorter."""
    return part_of(at, type_, Length.of("day") if is_shorter_than_period(length) else length)


def first_day(period: Scalar, length: Length) -> Scalar:
    """The date on which a period of :func:`period_of` begins, in UTC where its rows have instants; NULL without a time.

    >>> first_day(Scalar.parse("r.p"), Length.of("week")).sql
    "CASE WHEN r.p > -1000000000000000 THEN DATE_ADD(CAST('1970-01-01' AS DATE), CAST(r.p * 7 + 4 AS INT)) END"
    """
    if length.is_fixed:
        days = f"FLOOR(a.p * {max(_DAY, length.many)} / {_DAY})"
    elif length.unit in DAYS:
        days = f"a.p * {length.many * DAYS[length.unit]} + {FIRST_MONDAY if length.unit == 'week' else 0}"
    else:
        days = f"a.p * {length.many * MONTHS[length.unit]}"
    function = "ADD_MONTHS" if length.unit in MONTHS else "DATE_ADD"
    day = f"{function}(DATE '1970-01-01', CAST({days} AS INT))"
    return _over(f"CASE WHEN a.p > {_NEVER} THEN {day} END", {"p": period})


def longest_from_first_day(length: Length) -> int:
    """How many microseconds behind the start of :func:`first_day` a row of the period is, at the most.

    >>> longest_from_first_day(Length.of("month")) / (_DAY * SECOND) < 31 < longest_from_first_day(Length(100, "day"))
    True
    """
    begins_within_a_day = length.is_fixed and length.many % _DAY != 0
    return (max(_DAY, length.seconds) + (_DAY if begins_within_a_day else 0)) * SECOND - 1


def is_shorter_than_period(length: Length) -> bool:
    """Whether a period has several parts."""
    return length.is_fixed and length.many < _DAY


def _seconds(at: Scalar, type_: SparkType) -> Scalar:
    if type_.text == "timestamp":
        # Some engines round to whole seconds.
        return _over("UNIX_SECONDS(DATE_TRUNC('SECOND', a.t))", {"t": at})
    # Seconds of an int end in 2038.
    days = f"CAST(DATEDIFF(a.t, DATE '1970-01-01') AS BIGINT) * {_DAY}"
    if type_.text == "date":
        return _over(days, {"t": at})
    return _over(f"{days} + HOUR(a.t) * 3600 + MINUTE(a.t) * 60 + FLOOR(SECOND(a.t))", {"t": at})


def _over(sql: str, known: dict[str, Scalar]) -> Scalar:
    return Scalar.parse(sql).substitute(lambda c: known.get(c[1]))
