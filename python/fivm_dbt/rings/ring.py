"""An aggregate function is maintained in a ring of payloads, from which its result is computed.

A ring is one file of this package, which says by :func:`ring_of` which functions it is for. Its values are a fixed
number of typed columns. The planner computes what a row contributes by :meth:`Ring.one`, :meth:`Ring.lift` and
:meth:`Ring.multiply`; the columns are added up, negated and compared with zero by their :class:`Numbers`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, TypeVar

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial

Payload = tuple[Polynomial, ...]
"""A value of a ring, column by column."""


@dataclass(frozen=True)
class Ring(ABC):
    """The ring for a ``call`` of an aggregate function. What is not overridden here works column by column."""

    call: AggregateCall

    adds_doubles: ClassVar[bool] = False
    """Whether it takes doubles too where sums of them may be approximate."""

    is_of_spark: ClassVar[bool] = True
    """Whether Spark has the function, so that it can be called."""

    @property
    def argument(self) -> Scalar:
        """What a function of one argument is called with."""
        ((value, _),) = self.call.arguments
        return value

    @property
    def argument_type(self) -> SparkType:
        ((_, type_),) = self.call.arguments
        return type_

    @staticmethod
    @abstractmethod
    def takes(type_: SparkType) -> bool:
        """Whether it is exact over arguments of this type."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Numbers]:
        """What each column is called, and the numbers in it."""

    def one(self) -> Payload:
        """The payload of a row that says nothing: a product with it changes nothing."""
        return tuple(Polynomial.number(1) for _ in self.columns)

    def multiply(self, left: Payload, right: Payload) -> Payload:
        """The payload of a row that is joined of two."""
        return tuple(a * b for a, b in zip(left, right, strict=True))

    @abstractmethod
    def lift(self, place: int, value: Scalar, type_: SparkType) -> Payload:
        """The payload of a row in which the argument at a ``place`` is ``value``, and no other is known."""

    def payload(self) -> Payload:
        """The payload of a row with all arguments: the product of their lifts."""
        lifts = (self.lift(place, *argument) for place, argument in enumerate(self.call.arguments))
        return reduce(self.multiply, lifts, self.one())

    @abstractmethod
    def finish(self, payload: Sequence[Scalar]) -> Scalar:
        """The result of the call, with Spark's own type and value, from the columns of a payload."""


RINGS: dict[str, type[Ring]] = {}
"""The rings by function."""

R = TypeVar("R", bound=Ring)


def ring_of(*functions: str) -> Callable[[type[R]], type[R]]:
    """Have calls of some aggregate functions maintained in the ring that is defined below."""

    def register(ring: type[R]) -> type[R]:
        RINGS.update(dict.fromkeys(functions, ring))
        return ring

    return register
