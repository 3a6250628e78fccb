"""Rules for the types of results, after Spark's own (ANSI off, decimal arithmetic with precision loss allowed)."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE
from fivm_dbt.functions.function import Arguments


def first(arguments: Arguments) -> SparkType | None:
    """That of the first argument."""
    return arguments.type(0)


def array_of(type_: SparkType | None) -> SparkType | None:
    """An array of values of one type."""
    return None if type_ is None else SparkType(f"array<{type_.text}>")


def list_of_first(arguments: Arguments) -> SparkType | None:
    """An array of the first argument's values."""
    return array_of(arguments.type(0))


def several(arguments: Arguments) -> SparkType | None:
    """``max_by(x, y)`` is an x, ``max_by(x, y, n)`` an array of them."""
    return list_of_first(arguments) if len(arguments.nodes) > 2 else arguments.type(0)


def percentiles(type_: SparkType | None) -> Callable[[Arguments], SparkType | None]:
    """A percentile is a double (an approximate one is a value); asked for several shares at once it is an array."""

    def rule(arguments: Arguments) -> SparkType | None:
        one = arguments.type(0) if type_ is None else type_
        return array_of(one) if any(isinstance(n, exp.Array) for n in arguments.nodes) else one

    return rule


def total(arguments: Arguments) -> SparkType | None:
    """SUM: ten digits more for decimals."""
    type_ = arguments.type(0)
    if type_ is None or type_.text.startswith("interval"):
        return type_
    if type_.is_decimal:
        return SparkType.decimal(type_.precision + 10, type_.scale)
    return BIGINT if type_.is_integral else DOUBLE


def average(arguments: Arguments) -> SparkType | None:
    """AVG: four digits more for decimals, before and behind the point."""
    type_ = arguments.type(0)
    if type_ is None or type_.text.startswith("interval"):
        return type_
    return SparkType.decimal(type_.precision + 4, type_.scale + 4) if type_.is_decimal else DOUBLE
