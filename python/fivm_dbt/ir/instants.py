"""Instants are microseconds since 1970, which know nothing of clocks that change."""

from __future__ import annotations

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DATE, TIMESTAMP
from fivm_dbt.ir.scalar import Scalar

HOUR = 3_600_000_000
DAY = 24 * HOUR


def aligned(at: Scalar, slide: int, offset: int = 0) -> Scalar:
    """The last ``offset + n · slide`` that is not behind ``at``.

    >>> aligned(Scalar.parse("r.t"), 60).sql
    'r.t - PMOD(r.t, 60)'
    """
    since = f"{at.sql} - {offset}" if offset > 0 else f"{at.sql} + {-offset}" if offset < 0 else at.sql
    return Scalar.parse(f"{at.sql} - PMOD({since}, {slide})")


def timestamp(micros: Scalar) -> Scalar:
    """The instant that is so many microseconds after 1970."""
    return Scalar.parse(f"TIMESTAMP_MICROS({micros.sql})")


def micros_of(time: Scalar) -> Scalar:
    """The microseconds since 1970 of a timestamp."""
    return Scalar.parse(f"UNIX_MICROS({time.sql})")


def instant_of(time: Scalar, type_: SparkType | None) -> Scalar | None:
    """A time as a timestamp: of a date its midnight, so that a date is as long before another as their midnights are.

    None where the column has no type that has an instant.

    >>> instant_of(Scalar.parse("r.d"), DATE).sql
    'CAST(r.d AS TIMESTAMP)'
    """
    if type_ == DATE:
        return time.cast("timestamp")
    return time if type_ == TIMESTAMP else None


def day_of(micros: Scalar) -> Scalar:
    """The date of an instant, by the clocks of the session."""
    return timestamp(micros).cast("date")


def utc_day_number(micros: Scalar) -> Scalar:
    """The number of a day in UTC, from 1970 on: later instants never have a lower one, as local days may.

    >>> utc_day_number(Scalar.parse("r.t")).sql
    'CAST((r.t - PMOD(r.t, 86400000000)) / 86400000000 AS INT)'
    """
    return Scalar.parse(f"CAST(({aligned(micros, DAY).sql}) / {DAY} AS INT)")


def utc_day(number: Scalar) -> Scalar:
    """The date of a numbered day.

    >>> utc_day(Scalar.parse("r.n")).sql
    "DATE_ADD(CAST('1970-01-01' AS DATE), r.n)"
    """
    return Scalar.parse(f"DATE_ADD(CAST('1970-01-01' AS DATE), {number.sql})")
