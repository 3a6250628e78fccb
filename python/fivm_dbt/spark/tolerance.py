"""Two doubles count as equal within a tolerance, in Python for ``fivm replay`` and in SQL for ``fivm_exact``.

Engines add doubles in any order, so the last digits of a result are nobody's. NaN equals NaN, an infinity itself,
0.0 equals -0.0, NULL only NULL.
"""

from __future__ import annotations

import math

from sqlglot import exp

from fivm_dbt.ir.scalar import as_type

RELATIVE = 1e-9
ABSOLUTE = 1e-12
"""For what is left of values that cancel out: relative to zero every difference is large."""


def is_close(left: float, right: float) -> bool:
    """Whether two doubles are equal but for the last digits.

    >>> is_close(0.1 + 0.2, 0.3), is_close(math.inf, 1e308), is_close(math.nan, math.nan)
    (True, False, True)
    """
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def close(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """The same as a condition in Spark SQL, never NULL.

    Arithmetic is asked for finite values alone: of infinities and NaN, which Spark has above all others and equal to
    itself, ``abs(a - b) <= tolerance`` would hold too.
    """
    a, b = (as_type(side.copy(), "double") for side in (left, right))
    infinity = as_type(exp.Literal.string("Infinity"), "double")
    sizes = [exp.Abs(this=side.copy()) for side in (a, b)]
    finite = [exp.LT(this=size.copy(), expression=infinity.copy()) for size in sizes]
    tolerance = exp.Greatest(
        this=_double(ABSOLUTE),
        expressions=[
            exp.Mul(this=_double(RELATIVE), expression=exp.Greatest(this=sizes[0], expressions=[sizes[1]]))
        ],
    )
    distance = exp.Abs(this=exp.Sub(this=a.copy(), expression=b.copy()))
    near = exp.and_(*finite, exp.LTE(this=distance, expression=tolerance))
    either = exp.or_(exp.NullSafeEQ(this=a, expression=b), near)
    return exp.Coalesce(this=exp.paren(either), expressions=[exp.false()])


def _double(value: float) -> exp.Expr:
    return as_type(exp.Literal.string(repr(value)), "double")
