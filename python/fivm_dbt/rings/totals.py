"""A payload of a view tree, numbers or vectors of them: what its rows contribute, added up, and never NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.kinds import numbers_for
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.ring import Payload, Ring, ring_of
from fivm_dbt.rings.vectors import Vectors

TOTAL = "total"
"""The function of such a call."""


@ring_of(TOTAL)
class Totals(Ring):
    """One column, which is called as the call is."""

    @staticmethod
    def takes(type_: SparkType) -> bool:
        return type_.is_numeric or type_.is_array

    @property
    def columns(self) -> Mapping[str, Numbers]:
        type_ = self.call.type
        if not type_.is_array:
            return {"": numbers_for((type_,))}
        ((described, _),) = self.call.arguments
        return {"": Vectors(numbers_for((type_.element,)), len(described.ast().expressions))}

    def lift(self, place: int, value: Scalar, type_: SparkType) -> Payload:
        return (Polynomial.of(value, type_),)

    def finish(self, payload: Sequence[Scalar]) -> Scalar:
        (total,) = payload
        return total
