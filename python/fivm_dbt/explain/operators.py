"""These lines say how each operator is maintained: by a ring delta, by affected keys, or re-evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.rule import told
from fivm_dbt.delta.term import crossed, read_by, scans
from fivm_dbt.ir.clock_nodes import Crossing
from fivm_dbt.ir.higher_order import HigherOrder
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Filter, Map, UnionAll
from fivm_dbt.ir.on_demand import OnDemand, is_on_demand
from fivm_dbt.ir.one_sided import IfChanged
from fivm_dbt.ir.reads import Read, Scan, reads
from fivm_dbt.naming import CLOCK
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View


def maintenance(plan: Plan) -> list[str]:
    """Per view its operators with their rule, then what its delta reads in full."""
    lines = []
    for view in plan.stored:
        lines.append(f"{view.name}: {view.reason}")
        lines += [f"  {line}" for line in _top(view)]
        if view.over_time is not None:
            lines.append(f"  over time {view.over_time.name}: {view.over_time.why}")
        if view.closing is not None:
            lines.append(f"  {view.closing.text}")
        if is_on_demand(view.core):
            lines += [f"  {line}" for line in _evaluated(view.core, depth=1)]
        else:
            lines += [f"  {line}" for line in _below(view.core, skip_local=view.is_bag, depth=1)]
        asked = (n for term in view.terms for n in _asked(term.node) if n.is_opposite)
        lost = {name for n in asked for name in n.relations}
        if lost:
            how = "groups are put together from the own state and the rows that come"
            lines.append(f"  unless {' or '.join(sorted(lost))} changes: {how}")
        full = sorted(set(reads_in_full(view)))
        if full and is_on_demand(view.core):
            names = ", ".join(name for name, _ in full)
            full_lines = [f"  ! reads {names} in full when any of what it is evaluated over changes"]
        else:
            full_lines = [f"  ! reads {name} in full when {' or '.join(when)} changes" for name, when in full]
        lines += full_lines
        near = sorted({f"  reads {n.source.relation} where {b}" for n in _near(view) for b in n.times})
        lines += near
        if not full and not near:
            lines.append("  reads nothing in full")
    return lines


def _top(view: View) -> list[str]:
    state = view.state
    if not view.is_bag:
        keys = ", ".join(k.value.sql for k in state.keys) or "all rows"
        return [f"γ[{keys}]: ring delta, {1 + len(state.payload)} components are added to the state"]
    placed = ", ".join(state.grouped_by or tuple(k.name for k in state.keys))
    rows = f"a bag of rows, placed by {placed}"
    if is_on_demand(view.core):
        return [
            rows,
            "evaluated as a whole when anything changed; the rows of before are read from the own state",
        ]
    return [rows]


def _evaluated(node: Node, *, depth: int) -> Iterator[str]:
    """The operators of what has no delta: what is read is evaluated."""
    if isinstance(node, OnDemand):
        if isinstance(node.definition.input, Scan):
            yield "  " * depth + node.definition.input.described
            return
        is_swept = any(isinstance(inner, Local) and inner.has_frames for inner in node.walk())
        how = "running sums in the order of what is compared" if is_swept else "a join"
        yield "  " * depth + f"{node.described}: by {how}, over {read_by(node)}"
        return
    yield "  " * depth + node.described
    for child in node.inputs:
        yield from _evaluated(child, depth=depth + 1)


def _below(node: Node, *, skip_local: bool, depth: int) -> Iterator[str]:
    if isinstance(node, HigherOrder):
        yield "  " * depth + f"{node.described}: {told(node, is_own=False)}"
        for trigger in node.triggers:
            met = ", ".join(read_by(other) for other in trigger.others)
            yield "  " * (depth + 1) + f"Δ{read_by(trigger.changed)} meets {met}"
        return
    if node.inputs:
        yield "  " * depth + f"{node.described}: {told(node, is_own=skip_local)}"
    else:
        yield "  " * depth + node.described
    for child in node.inputs:
        yield from _below(child, skip_local=skip_local and isinstance(node, (Map, Filter)), depth=depth + 1)


def reads_in_full(view: View) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each relation that the delta reads unbounded, and the relations whose change makes it do so."""
    sets = {k.name: k for k in view.key_sets}
    for term in view.terms:
        steps = _of_earlier_steps(term.node)
        changed = [name for s in scans(term.node) if id(s) not in steps for name in _changes(s, sets)]
        asked = (name for n in _asked(term.node) if not n.is_opposite for name in n.relations)
        changed += ("the clock" if name == CLOCK else name for name in asked)
        staged = [sets[s.relation].node for s in scans(term.node) if s.relation in sets]
        if any(isinstance(n, Crossing) for node in (term.node, *staged) for n in node.walk()):
            changed.append("the clock")
        # Where a part of the changed rows makes the difference, their relation is named by it.
        when = tuple(c for c in dict.fromkeys(changed) if not any(o.startswith(f"{c} (") for o in changed))
        yield from ((name, when) for name in _unbounded(term.node))
    for key_set in view.key_sets:
        when = tuple(dict.fromkeys(name for s in scans(key_set.node) for name in _changes(s, sets)))
        yield from ((name, when) for name in _unbounded(key_set.node))


def _asked(node: Node) -> Iterator[IfChanged]:
    """The parts that are left out, or not, by what has changed."""
    return (n for n in node.walk() if isinstance(n, IfChanged))


def _near(view: View) -> Iterator[Read]:
    """What the delta reads between two times."""
    for node in (*(t.node for t in view.terms), *(k.node for k in view.key_sets)):
        yield from (read for read in reads(node) if read.is_near_changes and read.lookup is None)


def _unbounded(node: Node) -> Iterator[str]:
    """The relations of which a side is read, and not just where keys or moments lie."""
    crossing = crossed(node)
    for read in reads(node):
        is_bounded = read.lookup is not None or read.is_near_changes or id(read.source) in crossing
        if read.source.side is not Side.DELTA and not is_bounded:
            yield read.source.relation


def _changes(scan: Scan, sets: Mapping[str, KeySet]) -> Iterator[str]:
    """What has to change for these staged rows: a relation, or certain keys of it."""
    if scan.side is not Side.DELTA:
        return
    key_set = sets.get(scan.relation)
    if key_set is None:
        yield scan.relation
        return
    part = ""
    if (join := key_set.of_relation) is not None:
        part = " (keys that go)" if join.anti else " (known keys)"
    for inner in scans(key_set.node):
        yield from (f"{name}{part}" for name in _changes(inner, sets))


def _of_earlier_steps(node: Node) -> set[int]:
    """Staged rows that are only read to see a map between the steps of a refresh: they are no cause of the term."""
    unions = (n for n in node.walk() if isinstance(n, UnionAll))
    between = (u for u in unions if any(s.side is Side.OLD for b in u.branches[:1] for s in scans(b)))
    return {id(s) for union in between for s in scans(union) if s.side is Side.DELTA}
