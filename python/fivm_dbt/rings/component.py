"""A column of a payload: what rows contribute to it, and what they are added up in."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.integers import INTEGERS
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial


@dataclass(frozen=True)
class Component:
    """A payload column: ``Σ multiplicity × lift`` in some numbers, over the rows of a key."""

    numbers: Numbers
    lift: Polynomial

    @property
    def type(self) -> SparkType:
        return self.numbers.type

    def term(self, multiplicity: Scalar) -> Scalar:
        """The contribution of one signed row, of the column's type; a value that is NULL adds nothing."""
        if self.lift.is_plain:
            ((value, type_),) = self.lift.products[0].factors
            return self.numbers.lifted(multiplicity, value, type_)
        together = self.lift.with_presence_by(lambda _: None)
        return self.numbers.sum_of(together.never_null.products, multiplicity)


ROWS = Component(INTEGERS, Polynomial.of(Scalar.number(1), INT))
"""The number of rows of a key: a key dies when it is zero."""
