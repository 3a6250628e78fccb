"""Rows of a partition that change are deleted in their files, and new ones written beside them (ADR 0070).

Who writes a partition anew writes all of its rows, however few change. A row that is deleted stays in its file, and
whoever reads the file reads it too, until the partition is written anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.steps.applying import REPLACED_ROWS, StateSize

DELETED_SHARE = 0.2
"""Up to this share of a partition's rows may be deleted. To write a row costs five times what it costs to read one, and
to write them anew for fewer would cost more than to read them once more."""

CHANGED_SHARE = 0.05
"""Of more of a partition's rows that change at once all are written anew: of 240,000 rows with 27,000 that changed both
took 1.6 s, of 1.5 million with 15,000 it took 4.2 s where to delete them took 1.8."""

VECTOR_PARTITIONS = 500
"""In so many partitions rows are deleted at once, at most: the head lists them."""

BROADCAST_ROWS = 500_000
"""So many rows of a delta every task has in memory, to find those that they change."""


@dataclass(frozen=True)
class Deleted:
    """What is deleted in a partition: so many ``rows``, by so many ``commits``, each of which has added a file."""

    rows: int = 0
    commits: int = 0


@dataclass(frozen=True)
class DeletionVectors:
    """What is deleted in the states of a model, by view and partition."""

    found: Mapping[str, Mapping[str, Deleted]] = field(default_factory=dict)

    def pays(self, plan: Plan, view: View, partition: str, rows: int, size: StateSize | None) -> bool:
        """Whether so many keys that change in a partition are deleted, and it is not written anew.

        >>> from types import SimpleNamespace as Any
        >>> plan, view = Any(config=Any(fivm_fold_after=2)), Any(name="v", state=Any(is_global=False))
        >>> vectors, size = DeletionVectors({"v": {"p": Deleted(18, 1), "q": Deleted(1, 2)}}), StateSize(200, 2)
        >>> vectors.pays(plan, view, "p", 2, size), vectors.pays(plan, view, "p", 3, size)
        (True, False)
        >>> vectors.pays(plan, view, "r", 5, size), vectors.pays(plan, view, "r", 6, size)
        (True, False)
        >>> vectors.pays(plan, view, "q", 1, size)
        False
        """
        if size is None or view.state.is_global:
            return False
        there = size.rows / max(1, size.partitions)
        before = self.found.get(view.name, {}).get(partition, Deleted())
        most = plan.config.fivm_fold_after * max(1.0, there / REPLACED_ROWS)
        is_little = rows <= CHANGED_SHARE * there and before.rows + rows <= DELETED_SHARE * there
        return is_little and before.commits < most

    def after(
        self, touched: Mapping[str, Collection[str]], deleted: Mapping[str, Mapping[str, int]]
    ) -> DeletionVectors:
        """After a commit that has ``deleted`` so many rows in some ``touched`` partitions, and written others anew.

        >>> vectors = DeletionVectors({"v": {"p": Deleted(10, 1), "q": Deleted(1, 2)}})
        >>> vectors.after({"v": ["p", "q"]}, {"v": {"p": 5}}).as_dict()
        {'v': {'p': [15, 2]}}
        """
        every = {view: dict(found) for view, found in self.found.items()}
        for view, partitions in touched.items():
            for partition in partitions:
                before = every.setdefault(view, {}).pop(partition, Deleted())
                rows = deleted.get(view, {}).get(partition)
                if rows is not None:
                    every[view][partition] = Deleted(before.rows + rows, before.commits + 1)
        return DeletionVectors({view: found for view, found in every.items() if found})

    def as_dict(self) -> dict[str, Any]:
        """As a head records them."""
        return {
            view: {partition: [m.rows, m.commits] for partition, m in sorted(found.items())}
            for view, found in sorted(self.found.items())
        }

    @staticmethod
    def of(data: Mapping[str, Any] | None) -> DeletionVectors:
        """
        >>> vectors = DeletionVectors({"v": {"p": Deleted(10, 1)}})
        >>> DeletionVectors.of(vectors.as_dict()) == vectors
        True
        """
        return DeletionVectors(
            {v: {p: Deleted(*m) for p, m in found.items()} for v, found in (data or {}).items()}
        )
