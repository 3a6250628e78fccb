"""Decimals of a fixed scale are kept with 38 digits: sums of decimals, and exact sums of bigints for averages.

Overflow of 38 digits gives NULL with ANSI off. Inside a state NULL therefore means *overflowed*; the refresh notices
it (FIVM402) and rebuilds, because addition never recovers from NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import product_digits
from fivm_dbt.ir.scalar import Scalar, as_type, grouped, never_null
from fivm_dbt.rings.numbers import Numbers, Typed

OVERFLOW = "FIVM402 a product of decimal sums has more than 38 digits"
_COUNT_DIGITS, _EXACT_SCALE = 10, 6


@dataclass(frozen=True)
class Decimals(Numbers):
    """Decimals under + and ×. The scale is the lifted value's, so adding never rounds."""

    scale: int

    @property
    def may_overflow(self) -> bool:
        return True

    @property
    def type(self) -> SparkType:
        return SparkType.decimal(38, self.scale)

    def add(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """Sums of two decimal(37, s) are decimal(38, s); of wider ones Spark would round the last digits."""
        narrow = f"decimal(37,{self.scale})"
        return exp.Add(this=as_type(left, narrow), expression=as_type(right, narrow))

    def added(self, terms: Sequence[exp.Expr]) -> exp.Expr:
        total = super().added(terms)
        return self.checked(total, OVERFLOW) if len(terms) > 1 else total

    def multiply(self, factors: Sequence[Typed]) -> exp.Expr:
        """Decimals first, then counts. The type of each partial product keeps every digit after the point."""
        (first, type_), *rest = sorted(factors, key=lambda f: not f[1].is_decimal)
        value = first.ast()
        if not type_.is_decimal:
            type_ = SparkType.decimal(type_.precision, 0)
            value = as_type(value, type_.text)
        for scalar, factor_type in rest:
            factor = scalar.ast()
            if not factor_type.is_decimal:
                factor_type = SparkType.decimal(factor_type.precision, 0)
                factor = as_type(factor, factor_type.text)
            value, type_ = _multiplied(value, type_, factor, factor_type)
        cast = as_type(value, self.type.text)
        return self.checked(cast, OVERFLOW) if rest else cast

    def lifted(self, multiplicity: Scalar, value: Scalar, type_: SparkType) -> Scalar:
        """``multiplicity × value`` without losing scale.

        A product of decimal(p, s) and decimal(q, 0) is decimal(p + q + 1, s) while that fits 38 digits, and loses
        scale beyond; so the multiplicity gets the 37 − p digits that are left. Where those are too few, the rare
        multiplicities other than ±1 are added up one by one.
        """
        lift = value.ast()
        digits = min(19, 37 - type_.precision)
        sign = multiplicity.as_number
        if sign is not None and abs(sign) == 1:
            product = lift if sign == 1 else self.negate(lift)
        elif digits >= 6:
            factor = as_type(multiplicity.ast(), f"decimal({digits},0)")
            typed = as_type(lift, type_.text) if not type_.is_decimal else exp.paren(lift)
            product = exp.Mul(this=typed, expression=factor)
        else:
            product = self._one_by_one(multiplicity, lift)
        cast = as_type(product, self.type.text)
        if sign is not None and abs(sign) == 1:
            return Scalar(exp.Coalesce(this=cast, expressions=[self.zero()]))
        # NULL from a missing value is zero; NULL from an overflowing product must stay NULL to be noticed.
        missing = exp.Is(this=exp.paren(value.ast()), expression=exp.Null())
        return Scalar(exp.Case(ifs=[exp.If(this=missing, true=self.zero())], default=cast))

    def partial(self, value: Scalar) -> Scalar:
        return Scalar(self.checked(self.total(value.ast()), OVERFLOW))

    def stored(self, total: exp.Expr) -> exp.Expr:
        return as_type(total, self.type.text)

    def checked(self, value: exp.Expr, message: str) -> exp.Expr:
        return never_null(value, message, self.type.text)

    def over(self, types: Sequence[SparkType]) -> Decimals:
        # Also where all of these are whole numbers: a decimal that overflows says so.
        return Decimals(sum(t.scale for t in types if t.is_decimal))

    def _one_by_one(self, multiplicity: Scalar, value: exp.Expr) -> exp.Expr:
        """``±value`` for ±1, else the value added up as often as the multiplicity says."""
        cast = as_type(value.copy(), self.type.text)

        def when(operator: type[exp.Binary], number: int, then: exp.Expr) -> exp.If:
            return exp.If(
                this=operator(this=multiplicity.ast(), expression=Scalar.number(number).ast()), true=then
            )

        repeated = _repeated_sum(cast, exp.Abs(this=multiplicity.ast()), self)
        return exp.Case(
            ifs=[
                when(exp.EQ, 1, cast.copy()),
                when(exp.EQ, -1, exp.Neg(this=cast.copy())),
                when(exp.LT, 0, exp.Neg(this=repeated.copy())),
            ],
            default=repeated,
        )


def _repeated_sum(value: exp.Expr, times: exp.Expr, numbers: Decimals) -> exp.Expr:
    """``aggregate(array_repeat(value, times), 0, +)``."""
    names = [exp.to_identifier("total"), exp.to_identifier("item")]
    added = numbers.stored(numbers.add(*(name.copy() for name in names)))
    copies = exp.Anonymous(this="ARRAY_REPEAT", expressions=[value.copy(), as_type(times, "int")])
    return exp.Anonymous(
        this="AGGREGATE", expressions=[copies, numbers.zero(), exp.Lambda(this=added, expressions=names)]
    )


def _multiplied(
    left: exp.Expr, left_type: SparkType, right: exp.Expr, right_type: SparkType
) -> tuple[exp.Expr, SparkType]:
    """Spark cuts the scale of a product that may need more than 38 digits, but never below six."""
    precision, scale = product_digits(left_type, right_type)
    if precision > 38 and scale > _EXACT_SCALE:
        # Room is made in front of the point, where what does not fit gives NULL and with it the alarm.
        narrow = min(right_type.precision, max(_COUNT_DIGITS, right_type.scale + _COUNT_DIGITS))
        right_type = SparkType.decimal(narrow, right_type.scale)
        left_type = SparkType.decimal(min(left_type.precision, 37 - narrow), left_type.scale)
        left = as_type(left, left_type.text)
        right = as_type(right, right_type.text)
        precision, scale = product_digits(left_type, right_type)
    return exp.Mul(this=grouped(left), expression=grouped(right)), SparkType.decimal(precision, scale)
