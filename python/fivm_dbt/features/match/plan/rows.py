"""What is kept of the rows of a pattern: each expression once, under a name that a table takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import storable, unique_name


@dataclass
class KeptColumns:
    """Columns, called ``alias``, of the rows to be kept."""

    alias: str
    items: list[Item] = field(default_factory=list)

    def column(self, wanted: str, value: Scalar, type_: SparkType) -> Scalar:
        """The column that has ``value``: a new one where there is none, with the ``wanted`` name if that is free."""
        found = next((i for i in self.items if i.value == value), None)
        if found is None:
            found = Item(unique_name(storable(wanted), {i.name for i in self.items}), value, type_)
            self.items.append(found)
        return Scalar.column(self.alias, found.name)

    def of(self, rows: Node) -> Map:
        """The columns of ``rows``."""
        return Map(rows, self.alias, tuple(self.items))
