"""``fivm_apply``: whether a delta is merged into a state, or the partitions that it touches are written anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.plan.plan import Plan, View

REPLACED_ROWS = 1_000_000
"""Rows of a partition, on average, up to which ``auto`` writes it anew: what two cores write in a second."""


@dataclass(frozen=True)
class StateSize:
    """Rows and partitions of a state when it was built, or of what was written anew of it, if that was larger."""

    rows: int
    partitions: int

    def grown(self, rows: int, partitions: int) -> StateSize:
        """What is known after so many partitions have been written anew, with so many rows together."""
        is_larger = rows * max(1, self.partitions) > self.rows * partitions
        return StateSize(rows, partitions) if is_larger else self


def replaced_states(plan: Plan, sizes: Mapping[str, StateSize]) -> frozenset[str]:
    """The states whose touched partitions are written anew instead of merged into, by ``fivm_apply``.

    ``auto`` takes those of known ``sizes`` with small partitions, of which a MERGE would write most files anew too, and
    reads twice. Not those whose change feed is read: every row of such a partition is in it.
    """
    if plan.config.fivm_apply != "auto":
        return frozenset(v.name for v in plan.views if plan.config.fivm_apply == "replace")
    small = {name for name, s in sizes.items() if s.rows <= REPLACED_ROWS * max(1, s.partitions)}
    return frozenset(v.name for v in plan.views if v.name in small and not has_readers(plan, v))


def has_readers(plan: Plan, view: View) -> bool:
    """Whether other models read the change feed of a view's state."""
    return plan.is_read and view is plan.top
