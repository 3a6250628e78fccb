"""The numbers in one column of a payload: a ring written as Spark SQL, which is what every statement adds up with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.scalar import Scalar, as_type, grouped

Typed = tuple[Scalar, SparkType]


class Numbers(ABC):
    """A commutative ring of one column (F-IVM, section 3). Equal ones are the same ring.

    A state keeps per key ``Σ multiplicity × lift(row)``. Rows come and go by adding the payload of a signed delta, so
    that there has to be an additive inverse; without one, deletes would have to recompute.
    """

    @property
    def is_exact(self) -> bool:
        """Whether what is added can be taken away again without a rest."""
        return True

    @property
    def may_overflow(self) -> bool:
        """Whether a sum may need more digits than there are: it is NULL then, and never recovers."""
        return False

    @property
    @abstractmethod
    def type(self) -> SparkType:
        """The type of the column."""

    def zero(self) -> exp.Expr:
        return as_type(exp.Literal.number(0), self.type.text)

    def one(self) -> exp.Expr:
        return self.multiply(((Scalar.number(1), BIGINT),))

    def add(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """The sum of two values of the column."""
        return exp.Add(this=left, expression=right)

    def negate(self, value: exp.Expr) -> exp.Expr:
        return exp.Neg(this=exp.paren(value))

    def multiply(self, factors: Sequence[Typed]) -> exp.Expr:
        """The product of values that are never NULL, each of its own type, as a value of the column."""
        cast = [grouped(v.ast()) if t == self.type else as_type(v.ast(), self.type.text) for v, t in factors]
        return reduce(lambda left, right: exp.Mul(this=left, expression=right), cast)

    def added(self, terms: Sequence[exp.Expr]) -> exp.Expr:
        """The sum of what one row contributes, at least one value of the column."""
        return reduce(self.add, terms)

    @abstractmethod
    def lifted(self, multiplicity: Scalar, value: Scalar, type_: SparkType) -> Scalar:
        """``multiplicity × value`` of one row, of the column's type; NULL lifts to zero."""

    def total(self, value: exp.Expr) -> exp.Expr:
        """The sum over rows; NULL over none."""
        return exp.Sum(this=value)

    def partial(self, value: Scalar) -> Scalar:
        """A sum over rows that is added up again, where a NULL would be lost."""
        return Scalar(self.total(value.ast()))

    def stored(self, total: exp.Expr) -> exp.Expr:
        """A sum over rows as a value of the column."""
        return total

    def is_moved(self, total: exp.Expr) -> exp.Expr:
        """Whether a sum is not zero; NULL, after an overflow, is not."""
        return exp.NullSafeNEQ(this=total, expression=exp.Literal.number(0))

    def lost(self, column: exp.Expr) -> exp.Expr:
        """Whether one of the rows that are added up has overflowed."""
        there = exp.Count(this=column)
        return exp.LT(this=there, expression=exp.Count(this=exp.Star()))

    def checked(self, value: exp.Expr, message: str) -> exp.Expr:
        """A value of the column, but an error with ``message`` where it has overflowed."""
        return value

    def over(self, types: Sequence[SparkType]) -> Numbers:
        """What products of factors of some types are added up in, where their products with others are in this."""
        return self

    def sum_of(self, products: tuple[Product, ...], multiplicity: Scalar) -> Scalar:
        """``multiplicity × Σ products`` of one row, of the type of the column."""
        terms = [self._product(product, multiplicity) for product in products]
        return Scalar(self.added(terms) if terms else self.zero())

    def _product(self, product: Product, multiplicity: Scalar) -> exp.Expr:
        factors = list(product.factors)
        sign = multiplicity.as_number
        number = product.coefficient * (sign if sign is not None else 1)
        if sign is None:
            factors.append((multiplicity, BIGINT))
        if abs(number) != 1 or not factors:
            factors.append((Scalar.number(abs(number)), BIGINT))
        value = self.multiply(factors)
        return self.negate(value) if number < 0 else value
