"""A row that meets no variable's condition separates: no match has it, so none has rows before it and behind it.

The matches of a key are those between its separators, each found by itself. A change reaches no further than to the
last one before it and to the first one behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.features.match.ir.match import Match
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.parts.length import Length

PART, SEPARATORS = "period", "separators"


@dataclass(frozen=True)
class Stored:
    """The relation that keeps the counts of :func:`separators_by_part`, and their columns there."""

    relation: str
    columns: tuple[tuple[str, SparkType], ...]


@dataclass(frozen=True)
class Near:
    """The time of a row, in whose order the rows of the pattern lie, and the ``length`` of a part."""

    time: Scalar
    length: Length


@dataclass(frozen=True)
class Separated(Node):
    """The rows of ``input``, a pattern of which it is known which rows separate, and that looks at no others.

    ``part`` is the time part of a row, over its rows. ``stored`` are the counts of separators, where they are kept.
    Rows are read ``near`` the parts that are needed where that says how.
    """

    is_item = True

    input: Node
    part: Scalar
    stored: Stored | None = None
    near: Near | None = None

    @property
    def match(self) -> Match:
        assert isinstance(self.input, Match)
        return self.input

    @property
    def alias(self) -> str:
        return self.match.alias

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> None:
        return None

    @property
    def formula(self) -> str:
        return self.input.formula

    @property
    def described(self) -> str:
        counted = "" if self.stored is None else f", counted in {self.stored.relation}"
        return f"Separated by the rows that no match has{counted}"


def separators_by_part(match: Match, part: Scalar, alias: Callable[[], str]) -> Aggregate:
    """``γ[K, part; Σ separates]`` over the rows of a pattern with the key K, under aliases of its own."""
    assert match.separates is not None
    rows, names = renamed(match.input, lambda _: alias())
    by: list[Item] = []
    for item in (*match.partition, Item(PART, part, BIGINT)):
        name = unique_name(storable(item.name), {SEPARATORS, *(i.name for i in by)})
        by.append(Item(name, moved(item.value, names), item.type))
    call = AggregateCall(SEPARATORS, "sum", moved(match.separates, names), INT, BIGINT)
    return Aggregate(rows, alias(), tuple(by), (call,))
