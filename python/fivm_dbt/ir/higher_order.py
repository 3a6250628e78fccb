"""A join's change may be planned one relation at a time, over maps of the others (DBToaster, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.factored import Product, Summed
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class Total:
    """A column that is added up: the ``products`` of a row, in some ``numbers``."""

    name: str
    products: tuple[Product, ...]
    numbers: Summed

    @property
    def type(self) -> SparkType:
        return self.numbers.type

    def item(self, multiplicity: Scalar) -> Item:
        """What a row of this multiplicity contributes."""
        return Item(self.name, self.numbers.sum_of(self.products, multiplicity), self.type)


@dataclass(frozen=True)
class Trigger:
    """What a change of ``changed`` is joined with: ``others``, which are read as they are at this ``step``.

    A refresh takes the relations of a join one after the other, each a step: those before it are new, those after it
    old. ``keys`` and ``totals`` are what a row contributes.
    """

    changed: Node
    step: int
    others: tuple[Node, ...]
    predicates: tuple[Scalar, ...]
    keys: tuple[Item, ...]
    totals: tuple[Total, ...]


@dataclass(frozen=True)
class Defined(Node):
    """A node with the rows of ``definition``, of which it is planned otherwise how they change."""

    definition: Map

    @property
    def alias(self) -> str:
        return self.definition.alias

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.definition.fields

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.definition,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Defined:
        (definition,) = inputs
        assert isinstance(definition, Map)
        return replace(self, definition=definition)


@dataclass(frozen=True)
class HigherOrder(Defined):
    """The rows of ``definition``, which changes by its ``triggers``: ``Δ = ⊎_i (ΔR_i ⋈ maps of the others)``.

    Each row of the change has its multiplicity multiplied into its totals. ``is_stepwise`` says that somebody reads
    what has changed by a part of the steps.
    """

    triggers: tuple[Trigger, ...]
    is_stepwise: bool = False

    @property
    def described(self) -> str:
        return f"HigherOrder {self.alias}"
