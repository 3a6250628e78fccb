"""AVG of decimals, to the last digit as Spark computes it.

Spark divides sum by count with 39 digits after the point and rounds half up to the result's scale, while its ``/``
operator rounds first to a scale of as few as 6 digits. Casting the sum to its batch type decimal(p+10, s) leaves a
quotient of scale 28 − p + s. A quotient sum/count lies at least 10^−(s+4)/(2·count) away from a rounding boundary it
does not hit, so with the 24 − p extra digits rounding twice is harmless for counts below 10^(24−p)/2. For wider
decimals the integral part is divided off first, which leaves 12 extra digits whatever p is.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import Scalar

_NARROW = 12


def decimal_average(total: Scalar, count: Scalar, argument: SparkType, result: SparkType) -> Scalar:
    """``total / count`` for a non-zero count, rounded half up to ``result``."""
    divisor = exp.cast(count.ast(), "decimal(20,0)", dialect="spark")
    if argument.precision <= _NARROW:
        narrow = exp.cast(
            total.ast(), f"decimal({argument.precision + 10},{argument.scale})", dialect="spark"
        )
        return Scalar(exp.cast(exp.Div(this=narrow, expression=divisor), result.text, dialect="spark"))
    return Scalar(_by_parts(total, divisor, argument, result))


def averages_exactly(argument: SparkType) -> bool:
    """Whether AVG over this decimal type can be computed within 38 digits."""
    return argument.precision <= _NARROW or argument.precision + argument.scale + 5 <= 38


def _by_parts(total: Scalar, divisor: exp.Expr, argument: SparkType, result: SparkType) -> exp.Expr:
    """``(T − T mod n)/n`` exactly, plus the rounded rest, where ``T = total·10^s`` is a whole number.

    In units of 10^−s: ``avg = (whole + round(rest·10^k / n)·10^−k)``, with k = result.scale − s extra digits.
    """
    extra = result.scale - argument.scale
    unit = exp.Literal.number("1" + "0" * argument.scale)
    shifted = exp.cast(exp.Mul(this=total.ast(), expression=unit), "decimal(38,0)", dialect="spark")
    rest = exp.paren(exp.Mod(this=shifted.copy(), expression=divisor.copy()))
    divided = exp.Div(
        this=exp.paren(exp.Sub(this=shifted, expression=rest.copy())), expression=divisor.copy()
    )
    whole = exp.cast(divided, "decimal(32,0)", dialect="spark")
    finer = exp.Mul(
        this=exp.cast(rest, "decimal(20,0)", dialect="spark"),
        expression=exp.Literal.number("1" + "0" * extra),
    )
    tail = exp.cast(
        exp.Div(this=exp.paren(finer), expression=divisor.copy()), f"decimal({extra + 1},0)", dialect="spark"
    )
    small = exp.Div(
        this=exp.cast(tail, f"decimal({extra + 1},0)", dialect="spark"),
        expression=exp.Literal.number("1" + "0" * extra),
    )
    joined = exp.Add(this=whole, expression=exp.cast(small, f"decimal({extra + 1},{extra})", dialect="spark"))
    # As narrow as the value allows, so that the product below keeps its scale (see averages_exactly).
    narrow = exp.cast(joined, f"decimal({result.precision},{extra})", dialect="spark")
    return exp.cast(_shift_right(narrow, argument.scale), result.text, dialect="spark")


def _shift_right(value: exp.Expr, digits: int) -> exp.Expr:
    """``value · 10^−digits`` by a product with a literal, which unlike a division keeps every digit."""
    if digits == 0:
        return value
    literal = exp.Literal.number("0." + "0" * (digits - 1) + "1")
    return exp.Mul(this=exp.paren(value), expression=literal)
