"""A plan has inputs, and each input has a capture for its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fivm_dbt.catalog import Column, Relation, Retention
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import state_of

Capture = Literal[
    "change feed", "version difference", "snapshot", "static", "staged", "state", "built", "newest"
]


@dataclass(frozen=True, order=True)
class Reader:
    """A fivm or viewdf model that reads this one, and the table with its states."""

    model: str
    state: str

    @staticmethod
    def of(model: str, schema: str | None = None) -> Reader:
        """One that keeps its states in a ``schema`` of its own, if that is given.

        >>> Reader.of("analytics.daily").state
        'analytics.daily__fivm_state'
        """
        return Reader(model, state_of(model, schema))


@dataclass(frozen=True)
class PlanInput:
    """An input: the columns that the plan reads, and how its change is captured when nothing else is known."""

    relation: Relation
    columns: tuple[Column, ...]
    is_static: bool
    retention: Retention | None = None
    """By what its parts are dropped, where their rows do not count as deleted then."""
    conditions: tuple[Scalar, ...] = ()
    """What holds of every row that the plan looks at, over columns without an alias: other changes are not staged."""

    @property
    def name(self) -> str:
        return self.relation.name

    @property
    def table(self) -> str:
        """Where its rows lie: of a model that is shown by a view, in its state."""
        shown = self.relation.presentation
        return self.name if shown is None else shown.root

    @property
    def starts_with_snapshot(self) -> bool:
        """Seeds are dropped and created anew by dbt: only an own snapshot tells what changed."""
        return self.relation.is_recreated and not self.is_static
