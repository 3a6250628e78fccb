"""Access paths read and write the table of an inner view, as remark 2 of the F-IVM article lists indexes.

Delta has no indexes. A path is served by the partition column where that is a function of the path's columns, and the
one of readers by the sequence of the rows in a partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fivm_dbt.delta.key_sets import equalities
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.reads import Scan
from fivm_dbt.naming import split_name
from fivm_dbt.plan.layout.clustering import enumeration_prefixes
from fivm_dbt.plan.model.plan import FactorisedPlan, Plan
from fivm_dbt.plan.model.view import View

Kind = Literal["payload key", "sibling delta", "enumeration prefix"]


@dataclass(frozen=True)
class AccessPath:
    """Columns by which rows are found, for whom, and whether the partition column tells where they are."""

    kind: Kind
    columns: tuple[str, ...]
    by: str
    is_placed: bool

    def __str__(self) -> str:
        where = "" if self.is_placed else ", all partitions"
        return f"{self.kind} [{', '.join(self.columns)}]: {self.by}{where}"


def access_paths(plan: Plan, view: View) -> tuple[AccessPath, ...]:
    """The paths to the table of a helper view, each once."""
    return tuple(dict.fromkeys(_paths(plan, view)))


def _paths(plan: Plan, view: View) -> Iterator[AccessPath]:
    keys = tuple(k.name for k in view.state.keys)
    yield AccessPath("payload key", keys, "its own delta, to be written", True)
    placed = set(view.state.placing)
    for other in plan.stored:
        for join in (node for node in other.core.walk() if isinstance(node, Join)):
            pairs = [p for both in equalities(join.predicates) for p in (both, both[::-1])]
            for scan in (f for f in join.factors if isinstance(f, Scan) and f.relation == view.name):
                for sibling in (f for f in join.factors if f is not scan and _can_change(plan, f)):
                    columns = tuple(a[1] for a, b in pairs if a in scan.ids and b in sibling.ids)
                    changes = ", ".join(split_name(s.relation)[-1] for s in scans(sibling))
                    is_placed = bool(placed) and placed <= set(columns)
                    yield AccessPath("sibling delta", columns, f"the change of {changes}", is_placed)
    if isinstance(plan, FactorisedPlan):
        for scan, prefix in enumeration_prefixes(plan.top):
            if scan.relation == view.name:
                how = f"readers of the model, sorted by {', '.join(view.state.sorted_by)}"
                yield AccessPath("enumeration prefix", prefix, how, False)


def _can_change(plan: Plan, node: Node) -> bool:
    """Whether anything below ``node`` has a delta."""
    static = {i.name for i in plan.inputs if i.is_static} | {v.name for v in plan.helpers if not v.terms}
    return any(s.relation not in static for s in scans(node))
