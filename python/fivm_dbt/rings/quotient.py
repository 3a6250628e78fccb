"""AVG of decimals is computed to the last digit as Spark computes it.

Spark divides sum by count with 39 digits after the point and rounds half up to the result's scale, while its ``/``
operator rounds first to a scale of as few as 6 digits. Casting the sum to its batch type decimal(p+10, s) leaves a
quotient of scale 28 − p + s. A quotient sum/count lies at least 10^−(s+4)/(2·count) away from a rounding boundary it
does not hit, so with the 24 − p extra digits rounding twice is harmless for counts below 10^(24−p)/2. For wider
decimals the integral part is divided off first, which leaves 12 extra digits whatever p is.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import Scalar, as_type

_NARROW = 12


def decimal_average(total: Scalar, count: Scalar, argument: SparkType, result: SparkType) -> Scalar:
    """``total / count`` for a non-zero count, rounded half up to ``result``."""
    divisor = as_type(count.ast(), "decimal(20,0)")
    if argument.precision <= _NARROW:
        narrow = as_type(total.ast(), f"decimal({argument.precision + 10},{argument.scale})")
        return Scalar(as_type(exp.Div(this=narrow, expression=divisor), result.text))
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
    shifted = as_type(exp.Mul(this=total.ast(), expression=unit), "decimal(38,0)")
    rest = exp.paren(exp.Mod(this=shifted.copy(), expression=divisor.copy()))
    divided = exp.Div(
        this=exp.paren(exp.Sub(this=shifted, expression=rest.copy())), expression=divisor.copy()
    )
    whole = as_type(divided, "decimal(32,0)")
    finer = exp.Mul(
        this=as_type(rest, "decimal(20,0)"),
        expression=exp.Literal.number("1" + "0" * extra),
    )
    tail = as_type(exp.Div(this=exp.paren(finer), expression=divisor.copy()), f"decimal({extra + 1},0)")
    small = exp.Div(
        this=as_type(tail, f"decimal({extra + 1},0)"),
        expression=exp.Literal.number("1" + "0" * extra),
    )
    joined = exp.Add(this=whole, expression=as_type(small, f"decimal({extra + 1},{extra})"))
    # As narrow as the value allows, so that the product below keeps its scale (see averages_exactly).
    narrow = as_type(joined, f"decimal({result.precision},{extra})")
    return as_type(_shift_right(narrow, argument.scale), result.text)


def _shift_right(value: exp.Expr, digits: int) -> exp.Expr:
    """``value · 10^−digits`` by a product with a literal, which unlike a division keeps every digit."""
    if digits == 0:
        return value
    literal = exp.Literal.number("0." + "0" * (digits - 1) + "1")
    return exp.Mul(this=exp.paren(value), expression=literal)
