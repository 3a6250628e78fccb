"""COUNT(x): how many values are not NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.integers import INTEGERS, presence
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.ring import Payload, Ring, ring_of


@ring_of("count")
class Counts(Ring):
    """``[x is not null]`` in the integers."""

    @staticmethod
    def takes(type_: SparkType) -> bool:
        return True

    @property
    def columns(self) -> Mapping[str, Numbers]:
        return {"count": INTEGERS}

    def lift(self, place: int, value: Scalar, type_: SparkType) -> Payload:
        return (Polynomial.of(presence(value), INT),)

    def finish(self, payload: Sequence[Scalar]) -> Scalar:
        (count,) = payload
        return count
