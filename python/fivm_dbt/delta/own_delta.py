"""Views whose change is worked out as a whole, not operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.naming import PREFIX
from fivm_dbt.registry import Registry

STORED = f"{PREFIX}rows"
"""What the rows of such a delta are called, which have the columns of the state."""


class OwnDelta(Protocol):
    """The change of a state."""

    def terms(self) -> tuple[Term, ...]:
        """The rows that come and go."""

    def key_sets(self) -> tuple[KeySet, ...]:
        """What is staged before."""

    @property
    def determined(self) -> tuple[str, ...]:
        """The columns of the state that follow from the others: a MERGE compares these alone."""


OWN_DELTAS: Registry[Callable[[Any, str], OwnDelta]] = Registry()
"""By the class of the operator under projections: of that and the state's relation its delta is made."""


def has_own_delta(core: Node) -> bool:
    """Whether a view over ``core`` changes by a delta of its own."""
    return OWN_DELTAS.of(_under(core)) is not None


def own_delta(core: Node, relation: str) -> OwnDelta | None:
    """How the state ``relation`` changes, if it does by a delta of its own."""
    node = _under(core)
    make = OWN_DELTAS.of(node)
    return make(node, relation) if make is not None else None


def _under(core: Node) -> Node:
    while isinstance(core, Map):
        core = core.input
    return core
