"""Decimals of a fixed scale are kept with 38 digits: sums of decimals, and exact sums of bigints for averages.

Overflow of 38 digits gives NULL with ANSI off. Inside a state NULL therefore means *overflowed*; the refresh notices
it (FIVM402) and rebuilds, because addition never recovers from NULL.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import Scalar, as_type


class Decimals:
    """Decimals under + and ×. The scale is the lifted value's, so adding never rounds."""

    name = "decimals"
    has_inverse = True
    commutes = True

    def zero(self) -> Decimal:
        return Decimal(0)

    def one(self) -> Decimal:
        return Decimal(1)

    def add(self, left: Decimal, right: Decimal) -> Decimal:
        return left + right

    def negate(self, value: Decimal) -> Decimal:
        return -value

    def multiply(self, left: Decimal, right: Decimal) -> Decimal:
        return left * right

    def is_zero(self, value: Decimal) -> bool:
        return value == 0

    def column_type(self, lifted: SparkType) -> SparkType:
        return SparkType.decimal(38, lifted.scale)

    def term(self, multiplicity: Scalar, lift: Scalar, lifted: SparkType) -> Scalar:
        """``multiplicity × lift`` without losing scale.

        A product of decimal(p, s) and decimal(q, 0) is decimal(p + q + 1, s) while that fits 38 digits, and loses
        scale beyond; so the multiplicity gets the 37 − p digits that are left. Where those are too few, the rare
        multiplicities other than ±1 are added up one by one.
        """
        column = self.column_type(lifted)
        value = lift.ast()
        digits = min(19, 37 - lifted.precision)
        sign = multiplicity.as_number
        if sign is not None and abs(sign) == 1:
            product = value if sign == 1 else exp.Neg(this=exp.paren(value))
        elif digits >= 6:
            factor = as_type(multiplicity.ast(), f"decimal({digits},0)")
            typed = as_type(value, lifted.text) if not lifted.is_decimal else exp.paren(value)
            product = exp.Mul(this=typed, expression=factor)
        else:
            product = self._one_by_one(multiplicity, value, column)
        zero = as_type(exp.Literal.number(0), column.text)
        cast = as_type(product, column.text)
        if sign is not None and abs(sign) == 1:
            return Scalar(exp.Coalesce(this=cast, expressions=[zero]))
        # NULL from a missing value is zero; NULL from an overflowing product must stay NULL to be noticed.
        missing = exp.Is(this=exp.paren(lift.ast()), expression=exp.Null())
        return Scalar(exp.Case(ifs=[exp.If(this=missing, true=zero)], default=cast))

    def _one_by_one(self, multiplicity: Scalar, value: exp.Expr, column: SparkType) -> exp.Expr:
        """``±value`` for ±1, else the value added up as often as the multiplicity says."""
        cast = as_type(value.copy(), column.text)

        def when(operator: type[exp.Binary], number: int, then: exp.Expr) -> exp.If:
            return exp.If(
                this=operator(this=multiplicity.ast(), expression=Scalar.number(number).ast()), true=then
            )

        repeated = _repeated_sum(cast, exp.Abs(this=multiplicity.ast()), column)
        return exp.Case(
            ifs=[
                when(exp.EQ, 1, cast.copy()),
                when(exp.EQ, -1, exp.Neg(this=cast.copy())),
                when(exp.LT, 0, exp.Neg(this=repeated.copy())),
            ],
            default=repeated,
        )


def _repeated_sum(value: exp.Expr, times: exp.Expr, column: SparkType) -> exp.Expr:
    """``aggregate(array_repeat(value, times), 0, +)``.

    Sums of two decimal(37, s) are decimal(38, s); of wider ones Spark would round the last digits.
    """
    narrow = f"decimal(37,{column.scale})"
    names = [exp.to_identifier("total"), exp.to_identifier("item")]
    left, right = (as_type(name.copy(), narrow) for name in names)
    added = as_type(exp.Add(this=left, expression=right), column.text)
    copies = exp.Anonymous(this="ARRAY_REPEAT", expressions=[value.copy(), as_type(times, "int")])
    zero = as_type(exp.Literal.number(0), column.text)
    return exp.Anonymous(
        this="AGGREGATE", expressions=[copies, zero, exp.Lambda(this=added, expressions=names)]
    )
