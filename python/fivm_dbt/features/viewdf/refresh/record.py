"""The head that a refresh sets in the end says what became of parts; the catalog of parts shows it (ViewDF, 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fivm_dbt.features.viewdf.plan.model import PartPlan
from fivm_dbt.parts.intervals import Intervals


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Parts that were ``computed``, of which some have ``changed``; those of ``inputs`` in which rows have.

    ``dropped`` and ``merged`` are own parts that were, ``lost`` those of inputs that were dropped there. ``versions``
    are those of all inputs, as JSON.
    """

    versions: str
    computed: Intervals
    changed: Intervals
    inputs: Mapping[str, Intervals] = field(default_factory=dict)
    lost: Mapping[str, Intervals] = field(default_factory=dict)
    dropped: Intervals = field(default_factory=Intervals)
    merged: Intervals = field(default_factory=Intervals)

    def as_dict(self, plan: PartPlan) -> dict[str, Any]:
        """As JSON; what is recorded of inputs is in their order, as a view finds it."""
        names = [item.relation for item in plan.recorded_inputs]
        return {
            "versions": self.versions,
            "computed": str(self.computed),
            "changed": str(self.changed),
            "inputs": [str(self.inputs.get(name, Intervals())) for name in names],
            "lost": [str(self.lost.get(name, Intervals())) for name in names],
            "dropped": str(self.dropped),
            "merged": str(self.merged),
        }
