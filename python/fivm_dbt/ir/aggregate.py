"""GROUP BY, and its calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.factored import Factored
from fivm_dbt.ir.near import Days, Near
from fivm_dbt.ir.node import Field, Item, Node, listed, made
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class AggregateCall:
    """An SQL aggregate: function name, argument (None for COUNT(*)), the argument's type, and the result's type.

    A call that is no sum in a ring (MIN, COUNT(DISTINCT x), a sum of doubles...) stands in ``written`` as a whole.
    ``is_repeatable`` says that two evaluations over the same rows in another order agree to the last bit.
    """

    name: str
    function: str
    argument: Scalar | None
    argument_type: SparkType | None
    type: SparkType
    written: Scalar | None = None
    is_repeatable: bool = True

    @property
    def described(self) -> str:
        """The call, for people."""
        if self.written is not None:
            return self.written.sql
        return f"{self.function}({self.argument.sql if self.argument else '*'})"


@dataclass(frozen=True)
class Aggregate(Node):
    """GROUP BY ``keys``; without keys a global aggregate, which has one row even over nothing (``is_global``).

    ``factored`` says how its payload is added up where the input has payloads of a view tree instead of the rows that
    ``calls`` speak of. Over sliding windows and sessions ``near`` says where rows of an affected window are.
    """

    input: Node
    alias: str
    keys: tuple[Item, ...]
    calls: tuple[AggregateCall, ...]
    is_global: bool = False
    factored: Factored | None = None
    near: Near | Days | None = None

    def __post_init__(self) -> None:
        used: Iterable[Scalar | None]
        if self.factored is not None:
            used = self.factored.scalars
        else:
            used = (s for c in self.calls for s in (c.argument, c.written))
        self._check(*(k.value for k in self.keys), *(s for s in used if s is not None))
        self._check_names()

    @property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, (*self.keys, *self.calls))

    @property
    def adds_up(self) -> bool:
        """Whether every call is a sum in a ring, so that rows come and go by addition."""
        return all(call.written is None for call in self.calls)

    @property
    def described(self) -> str:
        calls = ", ".join(f"{c.name} = {c.described}" for c in self.calls)
        return f"Aggregate {self.alias} by [{listed(self.keys)}] [{calls}]"
