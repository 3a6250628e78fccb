"""A query without an aggregate needs rows again where views have added rows up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.node import Field, Item, Node, listed


@dataclass(frozen=True)
class Copies(Node):
    """The rows ``items`` over ``input``, each as often as ``times`` says: it stands for so many rows of the query.

    (F-IVM article, section 7.1: a result as a listing, with its multiplicities as payload.)
    """

    input: Node
    alias: str
    items: tuple[Item, ...]
    times: Product

    def __post_init__(self) -> None:
        self._check(*(i.value for i in self.items), *(scalar for scalar, _ in self.times.factors))

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, item.name, item.type) for item in self.items)

    @property
    def described(self) -> str:
        return f"Copies {self.alias} [{listed(self.items)}] times {self.times.sql}"
