"""Finite doubles are added for ``fivm_float: approximate``: sums that come and go without a recompute.

Addition cannot take an infinity or a NaN away again, so only finite values are added here, and those three are counted
beside (:func:`is_nan`, :func:`is_above`, :func:`is_below`): exact integers that come back to zero. Values are kept
scaled by 2^−64, which is exact, so that no sum of 2^64 doubles overflows; the shown sum is infinite where it is out of
range, and finite again as soon as it is not.

What is left is rounding: each addition errs by at most 2^−53 of the sum as it then is, so a group that once summed up
to 10^17 may be wrong by 10 for as long as it has rows (and no longer: its row goes with the last of them).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DOUBLE
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.numbers import Numbers

_SCALE, _UNSCALE = 2.0**-64, 2.0**64


@dataclass(frozen=True)
class Doubles(Numbers):
    """Finite doubles under + and ×, up to rounding: the laws hold wherever no digit is lost."""

    @property
    def is_exact(self) -> bool:
        return False

    @property
    def type(self) -> SparkType:
        return DOUBLE

    def lifted(self, multiplicity: Scalar, value: Scalar, type_: SparkType) -> Scalar:
        """``multiplicity × value × 2^−64``, zero for what is not finite."""
        double = as_type(value.ast(), "double")
        scaled: exp.Expr = exp.Mul(this=double, expression=_double(_SCALE))
        sign = multiplicity.as_number
        if sign == -1:
            scaled = self.negate(scaled)
        elif sign != 1:
            factor = as_type(multiplicity.ast(), "double")
            scaled = exp.Mul(this=scaled, expression=factor)
        return Scalar(exp.Case(ifs=[exp.If(this=_is_finite(double), true=scaled)], default=self.zero()))


DOUBLES = Doubles()


def unscaled(total: exp.Expr) -> exp.Expr:
    """A state's column as the sum of the values."""
    return exp.Mul(this=total, expression=_double(_UNSCALE))


def finite_part(value: exp.Expr) -> exp.Expr:
    """A double where it is finite, else NULL: its sum needs no counts of what is not."""
    return exp.Case(ifs=[exp.If(this=_is_finite(value), true=value.copy())])


def is_finite_part(lift: Scalar) -> bool:
    """Whether a lift was made by :func:`finite_part`."""
    node = lift.ast()
    is_case = isinstance(node, exp.Case) and len(node.args["ifs"]) == 1
    return is_case and node == finite_part(node.args["ifs"][0].args["true"])


def is_nan(value: Scalar) -> Scalar:
    """The indicator ``[value is NaN]`` as a lift: 0 or 1."""
    return _indicator(exp.IsNan(this=_of(value)))


def is_above(value: Scalar) -> Scalar:
    """The indicator ``[value is +∞]``."""
    return _indicator(exp.EQ(this=_of(value), expression=infinity()))


def is_below(value: Scalar) -> Scalar:
    """The indicator ``[value is −∞]``."""
    return _indicator(exp.EQ(this=_of(value), expression=exp.Neg(this=infinity())))


def infinity() -> exp.Expr:
    return as_type(exp.Literal.string("Infinity"), "double")


def nan() -> exp.Expr:
    return as_type(exp.Literal.string("NaN"), "double")


def _is_finite(value: exp.Expr) -> exp.Expr:
    # NaN is above infinity in Spark; NULL is not below it either.
    return exp.LT(this=exp.Abs(this=value.copy()), expression=infinity())


def _of(value: Scalar) -> exp.Expr:
    return as_type(value.ast(), "double")


def _indicator(condition: exp.Expr) -> Scalar:
    one, zero = exp.Literal.number(1), exp.Literal.number(0)
    return Scalar(exp.Case(ifs=[exp.If(this=condition, true=one)], default=zero))


def _double(value: float) -> exp.Expr:
    return as_type(exp.Literal.string(repr(value)), "double")
