"""A ring of payloads has addition, negation and the action of multiplicities (F-IVM, section 2).

A state keeps per key ``Σ multiplicity × lift(row)`` over the rows of the key. Rows come and go by adding the payload
of a signed delta, so a ring needs an additive inverse; without one, deletes would have to recompute.
"""

from __future__ import annotations

from typing import Any, Protocol

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import Scalar


class Ring(Protocol):
    """Values, their laws (tested for every registered ring), and how they are written in Spark SQL."""

    name: str
    has_inverse: bool
    commutes: bool

    def zero(self) -> Any: ...

    def one(self) -> Any: ...

    def add(self, left: Any, right: Any) -> Any: ...

    def negate(self, value: Any) -> Any: ...

    def multiply(self, left: Any, right: Any) -> Any: ...

    def is_zero(self, value: Any) -> bool: ...

    def column_type(self, lifted: SparkType) -> SparkType:
        """The type of the state column for lifted values of this type."""

    def term(self, multiplicity: Scalar, lift: Scalar, lifted: SparkType) -> Scalar:
        """``multiplicity × lift`` of one row, of the column's type; NULL lifts to zero."""
