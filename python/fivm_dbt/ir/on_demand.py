"""Of some parts of a query nothing is kept: their readers evaluate them over what is kept below."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.ir.higher_order import Defined
from fivm_dbt.ir.node import Node


@dataclass(frozen=True)
class OnDemand(Defined):
    """The rows of ``definition``, evaluated in each refresh that needs them.

    A view above it has no delta of its own: it is evaluated as a whole and compared with its state (Multilevel IVM,
    section 3.3: the input variable is pulled out of the materialisation and applied when the query is evaluated).
    """

    @property
    def described(self) -> str:
        return f"OnDemand {self.definition.alias}"


def is_on_demand(node: Node) -> bool:
    """Whether some part of ``node`` is evaluated on demand."""
    return any(isinstance(inner, OnDemand) for inner in node.walk())
