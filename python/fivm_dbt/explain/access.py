"""How the table of a helper view is read and written: its access paths, as remark 2 of the F-IVM article lists indexes.

Delta has no indexes. A path is served by the partition column where that is a function of the path's columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fivm_dbt.delta.key_sets import equalities
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.nodes import Join, Scan
from fivm_dbt.naming import split_name
from fivm_dbt.plan.plan import Plan, View

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
                for sibling in (f for f in join.factors if f is not scan):
                    columns = tuple(a[1] for a, b in pairs if a in scan.ids and b in sibling.ids)
                    changes = ", ".join(split_name(s.relation)[-1] for s in scans(sibling))
                    is_placed = bool(placed) and placed <= set(columns)
                    yield AccessPath("sibling delta", columns, f"the change of {changes}", is_placed)
    if plan.is_factorized and view.name in _order_of_readers(plan):
        yield AccessPath("enumeration prefix", _prefix(plan, view), "readers of the model", False)


def _order_of_readers(plan: Plan) -> list[str]:
    """The tables that the model's view joins, in their sequence."""
    return [scan.relation for scan in scans(plan.top.core)]


def _prefix(plan: Plan, view: View) -> tuple[str, ...]:
    """The columns that are known when a reader comes to the table: those of tables joined before it."""
    names = _order_of_readers(plan)
    before = {
        k.name
        for other in plan.helpers
        if other.name in names[: names.index(view.name)]
        for k in other.state.keys
    }
    return tuple(k.name for k in view.state.keys if k.name in before)
