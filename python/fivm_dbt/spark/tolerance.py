"""Two doubles count as equal within a tolerance, in Python for ``fivm replay`` and in SQL for ``fivm_exact``.

Engines add doubles in any order, so the last digits of a result are nobody's. NaN equals NaN, an infinity itself,
0.0 equals -0.0, NULL only NULL.
"""

from __future__ import annotations

import math

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import as_type, identifier

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


def has_doubles(type_: SparkType) -> bool:
    """Whether values of a type are doubles, or lists and structs that hold some."""
    return type_.is_floating or any(map(has_doubles, _parts(type_)))


def _parts(type_: SparkType) -> list[SparkType]:
    if type_.text.startswith("array<"):
        return [element for _, element in type_.element_columns() or []]
    return [field for _, field in type_.struct_fields]


def close_values(left: exp.Expr, right: exp.Expr, type_: SparkType) -> exp.Expr:
    """Whether two values of a type are equal but for the last digits of the doubles in them, never NULL."""
    if type_.is_floating:
        return close(left, right)
    same = exp.NullSafeEQ(this=left.copy(), expression=right.copy())
    if not has_doubles(type_):
        return same
    if type_.text.startswith("array<"):
        alike = _close_items(left, right, _parts(type_)[0])
    else:
        alike = exp.and_(*(_close_fields(left, right, *field) for field in type_.struct_fields))
    both = (exp.Not(this=exp.Is(this=side.copy(), expression=exp.Null())) for side in (left, right))
    return exp.Coalesce(this=exp.paren(exp.or_(same, exp.and_(*both, alike))), expressions=[exp.false()])


def _close_fields(left: exp.Expr, right: exp.Expr, name: str, type_: SparkType) -> exp.Expr:
    one, other = (exp.Dot(this=side.copy(), expression=identifier(name)) for side in (left, right))
    return close_values(one, other, type_)


def _close_items(left: exp.Expr, right: exp.Expr, item: SparkType) -> exp.Expr:
    """Of two lists, place by place."""
    place = exp.to_identifier(f"place_{sum(1 for _ in left.find_all(exp.Column, exp.Anonymous))}")
    sizes = [exp.Anonymous(this="SIZE", expressions=[side.copy()]) for side in (left, right)]
    items = [
        exp.Anonymous(this="TRY_ELEMENT_AT", expressions=[side.copy(), place.copy()])
        for side in (left, right)
    ]
    # One place more than there are, where both have NULL: SEQUENCE(1, 0) would go backwards.
    last = exp.Add(
        this=exp.Greatest(this=sizes[0].copy(), expressions=[exp.Literal.number(0)]),
        expression=exp.Literal.number(1),
    )
    places = exp.Anonymous(this="SEQUENCE", expressions=[exp.Literal.number(1), last])
    alike = exp.Lambda(this=close_values(items[0], items[1], item), expressions=[place])
    every = exp.Anonymous(this="FORALL", expressions=[places, alike])
    return exp.and_(exp.EQ(this=sizes[0], expression=sizes[1]), every)


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
