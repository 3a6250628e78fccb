"""A change of an input reaches a range of time in the result of a recomputed model.

    ``result[t] ← input[t + low .. t + high]``, so a row of the input at u has a part in ``result[u − high .. u − low]``

Only these rows are computed again, from inputs that are read around them, and replaced: ViewDF's propagation of late
data (section 4.3) for a query whose part references are not written but follow from it
(:mod:`fivm_dbt.delta.distances`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fivm_dbt.delta.distances import Distances
from fivm_dbt.delta.term import scans
from fivm_dbt.delta.ways import TooMany, Unknown
from fivm_dbt.ir.moments import is_utc, kind_of
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.reads import Scan
from fivm_dbt.naming import PREFIX
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.model.recompute import InputReach, RecomputedParts
from fivm_dbt.plan.model.view import View

Place = tuple[int, ...]


def recomputed_parts(
    node: Node, stored: Mapping[str, Item], names: tuple[str, ...], *, is_utc: bool
) -> RecomputedParts | None:
    """By the first column of the result from which the time of an input is known; None where there is none.

    ``names`` are the columns of ``node``, ``stored`` the state's columns that they are.
    """
    for field, name in zip(node.fields, names, strict=True):
        if kind_of(field.type) is None or kind_of(stored[name].type) is None:
            continue
        reaches = tuple(_reaches(node, field, is_utc=is_utc))
        if reaches:
            return RecomputedParts(stored[name].name, stored[name].type, reaches)
    return None


def parts_of_views(plan: MaintainedPlan) -> dict[str, RecomputedParts]:
    """The same of what a maintained model keeps: by view, of those in which it is known for some relation that is read.

    A state has one row for each of its keys, whatever the rows below it are: its keys are the columns of a result. The
    time of a view is the one by which a view above it reads it, or else that of its partitions.
    """
    found: dict[str, RecomputedParts] = {}
    wanted: dict[str, str] = {}
    for view in reversed(plan.stored):
        parts = _parts_of_view(view, wanted.get(view.name), is_utc=is_utc(plan.session))
        if parts is None:
            continue
        found[view.name] = parts
        for reach in parts.inputs:
            below = plan.helper(reach.relation)
            key = None if below is None else dict(below.times).get(reach.column)
            if key is not None:
                wanted.setdefault(reach.relation, key)
    return found


def reach_in_part(
    plan: MaintainedPlan, parts: Mapping[str, RecomputedParts], view: str, relation: str
) -> InputReach | None:
    """How far changes of a relation reach in a view that reads it, by the ``parts`` of all; None where nobody knows.

    Of a view below its changes are known by the time that it is computed by. Whether rows without one are among them is
    not, and in the order of time these come before all others: so nothing is known where an end is open.
    """
    reach = parts[view].reach(relation) if view in parts else None
    below = plan.helper(relation)
    if reach is None or below is None:
        return reach
    is_same = relation in parts and dict(below.times).get(reach.column) == parts[relation].column
    return reach if is_same and reach.low is not None and reach.high is not None else None


def inputs_in_part(plan: MaintainedPlan, parts: Mapping[str, RecomputedParts]) -> frozenset[str]:
    """The inputs of whose changes it is known which part of each view they reach, by the ``parts`` of the views."""
    return frozenset(item.name for item in plan.inputs if _is_in_part(plan, parts, item.name))


def _is_in_part(plan: MaintainedPlan, parts: Mapping[str, RecomputedParts], name: str) -> bool:
    reached = {name}
    for view in plan.stored:
        read = reached.intersection(scan.relation for scan in scans(view.core))
        if any(reach_in_part(plan, parts, view.name, relation) is None for relation in read):
            return False
        if read:
            reached.add(view.name)
    return True


def _parts_of_view(view: View, wanted: str | None, *, is_utc: bool) -> RecomputedParts | None:
    if view.state.is_global or view.step is not None:
        return None
    placing = view.state.placing
    keys = {
        k.name: k for k in sorted(view.state.keys, key=lambda k: (k.name != wanted, k.name not in placing))
    }
    rows = Map(view.core, f"{PREFIX}keys", tuple(keys.values()))
    return recomputed_parts(rows, keys, tuple(keys), is_utc=is_utc)


def _reaches(node: Node, field: Field, *, is_utc: bool) -> Iterator[InputReach]:
    """What is known of each relation, over all places in which the query reads it."""
    places: dict[str, list[tuple[Place, Scan]]] = {}
    for place, scan in _scans(node, ()):
        places.setdefault(scan.relation, []).append((place, scan))
    for relation, found in sorted(places.items()):
        columns = [(n, t) for n, t in found[0][1].columns if kind_of(t) is not None]
        known: list[tuple[bool, int, int, InputReach]] = []
        for name, type_ in columns:
            ends = [_ends(node, field, place, scan, name, is_utc=is_utc) for place, scan in found]
            low, high = _least([e[0] for e in ends]), _least([e[1] for e in ends])
            if low is not None or high is not None:
                reach = InputReach(relation, name, type_, None if low is None else -low, high)
                known.append((low is None or high is None, (low or 0) + (high or 0), len(known), reach))
        if known:
            yield min(known)[-1]


def _least(ends: list[int | None]) -> int | None:
    """The bound that holds in all places."""
    known = [e for e in ends if e is not None]
    return max(known) if len(known) == len(ends) else None


def _ends(
    node: Node, field: Field, place: Place, scan: Scan, column: str, *, is_utc: bool
) -> tuple[int | None, int | None]:
    """How much earlier and how much later than the result's time the column of a read is at the most."""
    distances = Distances(is_utc, with_frames=True)
    try:
        ways = [w for w in distances.ways(node, place) if any(r.place == place for r in w.reads)]
    except (TooMany, Unknown):
        return None, None
    if not ways or any(field.id not in w.columns for w in ways) or column not in dict(scan.columns):
        return None, None
    earlier: list[int | None] = []
    later: list[int | None] = []
    for way in ways:
        own = way.columns[field.id][0]
        read = next(r for r in way.reads if r.place == place)
        time = read.columns[read.scan.alias, column][0]
        for ends, one, other in ((earlier, own, time), (later, time, own)):
            most = way.most(one).get(other)
            ends.append(None if most is None else most[0].most)
    return _least(earlier), _least(later)


def _scans(node: Node, place: Place) -> Iterator[tuple[Place, Scan]]:
    if isinstance(node, Scan):
        yield place, node
    for number, child in enumerate(node.inputs):
        yield from _scans(child, (*place, number))
