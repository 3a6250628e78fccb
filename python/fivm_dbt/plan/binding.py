"""What a refresh adds to a plan: versions, the inputs that changed, names of staged deltas, the number of buckets."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import CLOCK, sibling, staged_name
from fivm_dbt.plan.plan import Capture, Plan


@dataclass(frozen=True)
class BoundInput:
    """An input at this refresh: its capture and the versions of its table (of its root state, for a fivm model).

    ``snapshot`` is the version of the own snapshot that holds the old state, for capture by snapshot.
    """

    name: str
    capture: Capture
    old: int | None
    new: int
    snapshot: int | None = None


@dataclass(frozen=True)
class BoundClock:
    """The time of the state, and that of this refresh: as much of it as the plan reads."""

    old: Clock
    new: Clock

    @property
    def moved(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class Binding:
    """The versions and literals of one refresh. Two bindings that are equal give the same statements.

    ``root_version`` is the version of the root state before it; None while it is built. ``clock`` is None where the
    plan does not read it.
    """

    inputs: tuple[BoundInput, ...]
    changed: frozenset[str]
    buckets: int
    root_version: int | None = None
    clock: BoundClock | None = None

    @property
    def moved(self) -> frozenset[str]:
        """The inputs that changed, and CLOCK if that did."""
        is_later = self.clock is not None and self.clock.moved
        return self.changed | {CLOCK} if is_later else self.changed

    def input(self, name: str) -> BoundInput:
        return next(i for i in self.inputs if i.name == name)


def staged_input(plan: Plan, name: str) -> str:
    """Session name of an input's staged net change."""
    return staged_name(plan.relation, name)


def staged_root(plan: Plan) -> str:
    """Session name of the root state's staged delta."""
    return staged_name(plan.relation, sibling(plan.relation, "root"))
