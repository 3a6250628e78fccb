"""Integers are added modulo 2⁶⁴, as Spark's bigint with ANSI off: counts, and sums of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

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
        absent = absences(value)
        if absent is not None:
            zero = exp.If(this=_any(absent), true=exp.Literal.number(0))
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


def presence_of_all(lifts: Sequence[Scalar]) -> Scalar:
    """The product of some lifts made by :func:`presence`, as one.

    >>> print(presence_of_all([presence(Scalar.column("r", name)) for name in "yx"]).sql)
    CASE WHEN r.x IS NULL OR r.y IS NULL THEN 0 ELSE 1 END
    """
    if len(lifts) == 1:
        return lifts[0]
    tests = {test for lift in lifts for test in absences(lift) or ()}
    zero = exp.If(this=_any(sorted(tests, key=lambda t: t.sql)), true=exp.Literal.number(0))
    return Scalar(exp.Case(ifs=[zero], default=exp.Literal.number(1)))


def is_presence(lift: Scalar) -> bool:
    """Whether a lift is an indicator that was made here."""
    return absences(lift) is not None


@lru_cache(maxsize=10_000)
def absences(lift: Scalar) -> tuple[Scalar, ...] | None:
    """``value is null`` for each value that a lift made by :func:`presence` is the indicator of; None for any other."""
    node = lift.ast()
    if not isinstance(node, exp.Case) or len(node.args["ifs"]) != 1:
        return None
    branch = node.args["ifs"][0]
    condition, one = branch.this, node.args.get("default")
    tests = list(condition.flatten()) if isinstance(condition, exp.Or) else [condition]
    is_indicator = branch.args["true"] == exp.Literal.number(0) and one == exp.Literal.number(1)
    if not is_indicator or not all(isinstance(test, exp.Is) for test in tests):
        return None
    return tuple(Scalar(test) for test in tests)


def _any(tests: Sequence[Scalar]) -> exp.Expr:
    return reduce(lambda left, right: exp.Or(this=left, expression=right), (test.ast() for test in tests))
