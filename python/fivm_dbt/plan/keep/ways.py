"""Ways to keep an operator that features know, beside its rows by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fivm_dbt.catalog import EventTime, TableStatistics
from fivm_dbt.catalog.statistics import READ_UP_TO
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.length import Length, duration
from fivm_dbt.plan.keep.kept_views import Copied, KeptViews, column_below
from fivm_dbt.plan.model.closing import Closing
from fivm_dbt.registry import Registry


@dataclass(frozen=True)
class WantedParts:
    """How rows are to be kept: in time parts of a ``length``, if in any, and so many ``buckets``, where that is said.

    Where the length ``is_chosen``, nobody has given it, and it may be another by what was ``measured``. ``separates``
    says that a pattern may be found between the rows that no match has. Of inputs that are ``dropped`` in parts a copy
    has the rows of these still. Reads are bounded by times ``in_order`` of which rows lie, unless that is left out.
    How late rows come is known of inputs by their ``event_times``.
    """

    length: Length | None
    buckets: int | None
    is_chosen: bool = False
    measured: TableStatistics | None = None
    separates: bool = True
    dropped: frozenset[str] = frozenset()
    in_order: bool = True
    event_times: Mapping[str, EventTime] = field(default_factory=dict)

    def are_read(self, copied: Copied | None) -> bool:
        """Whether a refresh reads all of an input rather than a copy, which has to be written too."""
        if copied is None or not self.is_chosen or self.measured is None or copied.relation in self.dropped:
            return False
        rows = self.measured.rows_of(copied.relation)
        return rows is not None and rows <= READ_UP_TO

    def lie_in_order(self, kept: KeptViews, rows: Node, values: Iterable[Scalar]) -> bool:
        """Whether rows of an input lie in the order of a time of ``values``, so that those near a change are read."""
        copied, times = kept.copied(rows), kept.times_of_input(rows, values)
        if copied is None or not self.in_order or self.measured is None or copied.relation in self.dropped:
            return False
        return any(self.measured.range_of(copied.relation, time) is not None for time in times)

    def closing(
        self, kept: KeptViews, rows: Node, at: Scalar, period: Length, buckets: int
    ) -> Closing | None:
        """How long rows of an input are kept by periods of their time ``at``, if it is said how late they come."""
        copied = kept.copied(rows)
        time = self.event_times.get(copied.relation) if copied is not None else None
        if copied is None or time is None or time.lateness is None or not at.is_column:
            return None
        if (column_below(rows, at) or "").lower() != time.column.lower():
            return None
        lateness = (time.lateness, duration(time.lateness))
        return Closing.of(copied.relation, time.column, lateness, period, buckets)


KEPT_AS: Registry[Callable[[KeptViews, Any, WantedParts], Node | None]] = Registry()
"""By class: the rows of an operator over views that are kept for it; None where that is not possible."""


def kept_as(node: Local, kept: KeptViews, parts: WantedParts) -> Node | None:
    """The rows of ``node`` from what a feature keeps for it, if one does."""
    way = KEPT_AS.of(node)
    return way(kept, node, parts) if way is not None else None


WITH_OWN_ROWS: Registry[Callable[[Any], Local]] = Registry()
"""By class: the operator with what finds its own rows near a change, where a view of it is made anew from these."""

OVER_KEPT: Registry[Callable[[Aggregate, Any], Aggregate | None]] = Registry()
"""By class of the operator whose rows a view keeps: an aggregate over a scan of the view that says where its rows lie.

None where the aggregate does not tell.
"""


def has_own_rows(node: Local) -> bool:
    """Whether a view of ``node`` is made anew from its own rows."""
    return WITH_OWN_ROWS.of(node) is not None


def with_own_rows(node: Local) -> Local | None:
    """``node`` where a view of it is made anew from its own rows; None for others."""
    way = WITH_OWN_ROWS.of(node)
    return way(node) if way is not None else None


def over_kept(node: Aggregate, below: Node) -> Aggregate | None:
    """``node`` over a scan of a view of ``below``, with where the rows of its groups lie; None if it does not tell."""
    way = OVER_KEPT.of(below)
    return way(node, below) if way is not None else None
