"""Inputs may drop old parts: their rows do not count as deleted, so no view may need them again.

Of a view ``V = Q(R, …)`` that is linear in ``R`` what a dropped part ``D`` has contributed stands by itself:
``Q(R − D) = Q(R) − Q(D)``, and to leave out the change ``−D`` leaves ``Q(D)`` in the view. Whatever is computed anew
from the rows of a group, such as MAX after a deletion, would lose what dropped rows had contributed. Where the planner
keeps a copy of these rows as an inner view, the copy is what adds up; where it does not, each group has to lie in one
part, and so be dropped as a whole. Source: ViewDF, section 5.1.1, on what is no longer needed of old parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from fivm_dbt.catalog import Catalog, Column, EventTime, Relation, Retention
from fivm_dbt.config import Config
from fivm_dbt.delta.term import scans
from fivm_dbt.errors import FivmError
from fivm_dbt.ir import moments
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.shift import Shift
from fivm_dbt.plan.layout.root import Root
from fivm_dbt.plan.model.part_map import part_map
from fivm_dbt.plan.model.plan import Plan

Retained = Mapping[str, Retention]
"""By relation how its parts are dropped, of those whose dropped rows do not count as deleted."""


def retained(catalog: Catalog, config: Config) -> dict[str, Retention]:
    """The relations whose dropped parts the model keeps its results of (``fivm_dropped_parts``)."""
    if config.fivm_dropped_parts == "retract":
        return {}
    return {r.name: r.retention for r in catalog.relations if r.retention is not None}


def check_kept(
    name: str, node: Node, names: tuple[str, ...], root: Root, dropped: Retained, *, is_utc: bool
) -> None:
    """Raise FIVM206 if the view ``node`` needs rows of dropped parts after they have been dropped."""
    for relation in sorted({s.relation for s in scans(node)} & dropped.keys()):
        # Sessions are made anew from their own rows, of which none goes with a dropped part.
        is_own = root.local is not None and root.local.is_of_own_rows
        is_anew = (root.local is not None and not is_own) or root.is_reevaluated
        above = root.local.input if is_own and root.local is not None else root.core
        if not is_anew and _adds_up(above, relation):
            continue
        column = _time_of(node, names, relation, dropped[relation], is_utc=is_utc)
        if column is not None and dict(root.shown).get(column) in root.local_keys:
            continue
        raise not_kept(
            name, relation, "is computed anew from the rows of its groups, which lie in more than one part"
        )


def not_kept(view: str, relation: str, why: str) -> FivmError:
    """FIVM206: the results of a view over dropped parts cannot be kept."""
    return FivmError(
        "FIVM206",
        f"fivm_retention drops parts of {relation}, and {view} {why}",
        remedy="group by a time of which each value lies in one part, or take dropped rows for deleted ones "
        "(fivm_dropped_parts: retract)",
    )


def computed_after(plan: Plan, relation: Relation) -> tuple[Column, timedelta] | None:
    """A time column of a model, and how long before it rows of ``relation`` are at most that it is computed from."""
    assert relation.retention is not None
    times = {relation.name: EventTime(relation.retention.column)}
    names = tuple(c.name for c in plan.output)
    found = part_map(plan.relation, plan.query, names, times, is_utc=moments.is_utc(plan.session))
    inputs = () if found is None else tuple(i for i in found.inputs if i.relation == relation.name)
    lows = [i.low for i in inputs if i.low is not None and i.column == relation.retention.column]
    if found is None or not lows or len(lows) < len(inputs):
        return None
    column = next(c for c in plan.output if c.name == found.column)
    return column, timedelta(
        microseconds=max(Shift(-low.months, -low.micros, low.slack).most for low in lows)
    )


def _adds_up(node: Node, relation: str) -> bool:
    """Whether the result is linear in ``relation``: operators that would need its rows again stand nowhere above it."""
    if isinstance(node, Scan):
        return True
    below = [child for child in node.inputs if any(s.relation == relation for s in scans(child))]
    is_linear = not below or node.is_linear or (node.passes_rows and below == [node.inputs[0]])
    return is_linear and all(_adds_up(child, relation) for child in below)


def _time_of(
    node: Node, names: tuple[str, ...], relation: str, retention: Retention, *, is_utc: bool
) -> str | None:
    """A column of the view each value of which is computed from one part of the relation."""
    found = part_map(relation, node, names, {relation: EventTime(retention.column)}, is_utc=is_utc)
    inputs = () if found is None else tuple(i for i in found.inputs if i.relation == relation)
    if found is None or not inputs:
        return None
    if found.unit is not None and not Length.of(found.unit).divides(retention.length):
        return None
    longest = 0 if found.unit is None else found.rest.micros - 1
    for item in inputs:
        if item.column != retention.column or item.low is None or item.high is None:
            return None
        if any(s.months or s.slack for s in (item.low, item.high)):
            return None
        if item.low.micros < 0 or item.high.micros > longest:
            return None
    return found.column
