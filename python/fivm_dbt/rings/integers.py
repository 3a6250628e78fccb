"""Integers are added modulo 2⁶⁴, as Spark's bigint with ANSI off: counts, and sums of integers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.numbers import Numbers


@dataclass(frozen=True)
class Integers(Numbers):
    """ℤ/2⁶⁴. Sums wrap as in a full recompute, and a later delta wraps them back: still exact."""

    @property
    def type(self) -> SparkType:
        return BIGINT

    def lifted(self, multiplicity: Scalar, value: Scalar, type_: SparkType) -> Scalar:
        if value.as_number == 1:
            return multiplicity
        absent = absent_of(value)
        if absent is not None:
            zero = exp.If(this=absent, true=exp.Literal.number(0))
            return Scalar(exp.Case(ifs=[zero], default=multiplicity.ast()))
        whole = value.ast() if type_ == BIGINT else as_type(value.ast(), "bigint")
        sign = multiplicity.as_number
        if sign == 1:
            product: exp.Expr = whole
        elif sign == -1:
            product = self.negate(whole)
        else:
            product = exp.Mul(
                this=multiplicity.ast(),
                expression=exp.paren(whole) if isinstance(whole, exp.Binary) else whole,
            )
        return Scalar(exp.Coalesce(this=product, expressions=[exp.Literal.number(0)]))


INTEGERS = Integers()


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
