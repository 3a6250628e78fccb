"""Times as microseconds since 1970, which know nothing of clocks that change."""

from __future__ import annotations

from fivm_dbt.ir.scalar import Scalar

HOUR = 3_600_000_000


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


def day_of(micros: Scalar) -> Scalar:
    """The date of an instant, by the clocks of the session."""
    return timestamp(micros).cast("date")
