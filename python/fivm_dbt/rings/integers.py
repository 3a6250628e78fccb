"""Integers are added modulo 2⁶⁴, as Spark's bigint with ANSI off: counts, and sums of integers."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import Scalar, as_type


class Integers:
    """ℤ/2⁶⁴. Sums wrap as in a full recompute, and a later delta wraps them back: still exact."""

    name = "integers"
    has_inverse = True
    commutes = True

    def zero(self) -> int:
        return 0

    def one(self) -> int:
        return 1

    def add(self, left: int, right: int) -> int:
        return _wrap(left + right)

    def negate(self, value: int) -> int:
        return _wrap(-value)

    def multiply(self, left: int, right: int) -> int:
        return _wrap(left * right)

    def is_zero(self, value: int) -> bool:
        return value == 0

    def column_type(self, lifted: SparkType) -> SparkType:
        return BIGINT

    def term(self, multiplicity: Scalar, lift: Scalar, lifted: SparkType) -> Scalar:
        if lift.as_number == 1:
            return multiplicity
        absent = absent_of(lift)
        if absent is not None:
            zero = exp.If(this=absent, true=exp.Literal.number(0))
            return Scalar(exp.Case(ifs=[zero], default=multiplicity.ast()))
        value = lift.ast() if lifted == BIGINT else as_type(lift.ast(), "bigint")
        sign = multiplicity.as_number
        if sign == 1:
            product: exp.Expr = value
        elif sign == -1:
            product = exp.Neg(this=exp.paren(value))
        else:
            product = exp.Mul(
                this=multiplicity.ast(),
                expression=exp.paren(value) if isinstance(value, exp.Binary) else value,
            )
        return Scalar(exp.Coalesce(this=product, expressions=[exp.Literal.number(0)]))


def presence(value: Scalar) -> Scalar:
    """The indicator ``[value is not null]`` as a lift: 0 or 1."""
    inner = value.ast() if value.is_column else exp.paren(value.ast())
    missing = exp.If(this=exp.Is(this=inner, expression=exp.Null()), true=exp.Literal.number(0))
    return Scalar(exp.Case(ifs=[missing], default=exp.Literal.number(1)))


def absent_of(lift: Scalar) -> exp.Expr | None:
    """``value is null`` of a lift made by :func:`presence`, None for any other: 0 or the multiplicity itself."""
    node = lift.ast()
    if not isinstance(node, exp.Case) or len(node.args["ifs"]) != 1:
        return None
    branch = node.args["ifs"][0]
    is_indicator = branch.args["true"] == exp.Literal.number(0) and node.args.get(
        "default"
    ) == exp.Literal.number(1)
    condition = branch.this
    return condition if is_indicator and isinstance(condition, exp.Is) else None


def _wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
