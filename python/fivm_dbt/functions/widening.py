"""Spark widens several types to one, and gives decimal arithmetic its types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DOUBLE, STRING, TIMESTAMP, product_digits, sum_digits

VOID = SparkType("void")
_WIDER = ("tinyint", "smallint", "int", "bigint")


def decimal_result(operator: type[exp.Expr], left: SparkType, right: SparkType) -> SparkType:
    """Spark's result type of decimal arithmetic.

    >>> str(decimal_result(exp.Mul, SparkType.of("decimal(12,2)"), SparkType.of("decimal(13,2)")))
    'decimal(26,4)'
    """
    (p1, s1), (p2, s2) = (left.precision, left.scale), (right.precision, right.scale)
    if operator in (exp.Add, exp.Sub):
        precision, scale = sum_digits(left, right)
    elif operator is exp.Mul:
        precision, scale = product_digits(left, right)
    elif operator is exp.Div:
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    return adjusted(precision, scale)


def adjusted(precision: int, scale: int) -> SparkType:
    """A decimal type cut to 38 digits: the scale gives way, but keeps at least 6."""
    if precision <= 38:
        return SparkType.decimal(precision, scale)
    whole = precision - scale
    return SparkType.decimal(38, max(38 - whole, min(scale, 6)))


def common_type(types: Sequence[SparkType | None], *, to_string: bool = True) -> SparkType | None:
    """The type to which Spark widens all of ``types`` (CASE, COALESCE, UNION), None if unknown.

    Without ``to_string`` a string beside something else has no type in common with it, as in VALUES.

    >>> from fivm_dbt.catalog.types import BOOLEAN
    >>> str(common_type([SparkType("int"), SparkType.of("decimal(5,2)")]))
    'decimal(12,2)'
    >>> str(common_type([SparkType("int"), STRING])), common_type([BOOLEAN, STRING])
    ('string', None)
    """
    if any(t is None for t in types):
        return None
    known = [t for t in types if t is not None and t != VOID]
    if not known:
        return VOID
    result = known[0]
    for other in known[1:]:
        wider = _wider_pair(result, other)
        if wider is None and to_string:
            wider = _as_string(result, other)
        if wider is None:
            return None
        result = wider
    return result


def _wider_pair(a: SparkType, b: SparkType) -> SparkType | None:
    if a == b:
        return a
    if a.is_string and b.is_string:
        return STRING
    if a.is_integral and b.is_integral:
        return widest(a, b)
    if a.is_numeric and b.is_numeric:
        if a.is_floating or b.is_floating:
            # A float beside an integer stays a float; beside a decimal both become doubles.
            return DOUBLE if DOUBLE in (a, b) or a.is_decimal or b.is_decimal else SparkType("float")
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        return SparkType.decimal(whole + scale, scale) if whole + scale <= 38 else None
    if {a.text, b.text} == {"date", "timestamp"}:
        return TIMESTAMP
    return None


def _as_string(a: SparkType, b: SparkType) -> SparkType | None:
    """STRING where one is a string, and the other one has a text; with ANSI off."""
    other = b if a.is_string else a
    has_text = other.is_numeric or other.text in ("date", "timestamp", "timestamp_ntz")
    return STRING if (a.is_string or b.is_string) and has_text else None


def widest(a: SparkType, b: SparkType) -> SparkType:
    """The wider of two integral types."""
    return a if _WIDER.index(a.text) >= _WIDER.index(b.text) else b
