"""Some operators read the clock, so that their rows come, go and change with time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.ir.node import Field, Item, Node, conjunction, listed, made
from fivm_dbt.ir.nodes import Filter
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import CLOCK


@dataclass(frozen=True)
class ClockFilter(Node):
    """Rows of ``input`` for which every predicate is true; each reads the clock, so that rows come and go with time.

    On one side of a refresh it is a Filter: there the time is known (:mod:`fivm_dbt.ir.clock`).
    """

    is_row_level = True
    drops_rows = True

    input: Node
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)

    @property
    def described(self) -> str:
        return f"ClockFilter {conjunction(self.predicates)}"


@dataclass(frozen=True)
class ClockMap(Node):
    """A Map with items that compare something with the clock. On one side of a refresh it is a Map."""

    is_row_level = True
    is_item = True

    input: Node
    alias: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        self._check(*(item.value for item in self.items))

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, self.items)

    @property
    def described(self) -> str:
        return f"ClockMap {self.alias} [{listed(self.items)}]"


@dataclass(frozen=True)
class Crossing(Filter):
    """In a delta: the rows of ``input`` for which something is different because the clock moved.

    ``predicates`` are over the clocks of both sides. If the clock stood still there are none, and the term vanishes.
    """

    def left_by(self, changed: Collection[str]) -> Node | None:
        return super().left_by(changed) if CLOCK in changed else None

    @property
    def formula(self) -> str:
        return f"σ[old time → new time]({self.input.formula})"

    @property
    def described(self) -> str:
        return f"Crossing {conjunction(self.predicates)}"
