"""A plan in plain words: what is kept and for whom, and what the change of a row of each input does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, crossed, scans
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.reads import reads
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import old_rows, split_name
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View


def short(relation: str) -> str:
    """A relation without its schema, as people call it.

    >>> short("raw.`Orders`")
    'Orders'
    """
    return split_name(relation)[-1].strip("`")


def listed(names: Iterable[str], last: str = "and") -> str:
    """Names as a part of a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    *first, end = list(names) or [""]
    return f"{', '.join(first)} {last} {end}" if first else end


def sources_of(plan: Plan, node: Node) -> tuple[str, ...]:
    """The inputs that a query reads, through inner views."""
    views = {view.name: view for view in plan.views}
    found: dict[str, None] = {}
    for scan in scans(node):
        below = views.get(scan.relation)
        found.update(dict.fromkeys([scan.relation] if below is None else sources_of(plan, below.core)))
    return tuple(found)


@dataclass(frozen=True)
class Effect:
    """What the change of a row of an input does: the views that it changes, and where it looks for its partners.

    ``looked_up`` are relations of which only some partitions are read, ``near`` those that are read around the times of
    the change, ``full`` those that are read in full.
    """

    moved: str
    changes: tuple[View, ...]
    looked_up: tuple[str, ...]
    near: tuple[str, ...]
    full: tuple[str, ...]


def effect_of(plan: Plan, moved: str) -> Effect:
    """The effect of a change of this input alone."""
    changed = frozenset({moved, old_rows(moved)})
    views: list[View] = []
    found: dict[str, dict[str, None]] = {"looked up": {}, "near": {}, "full": {}}
    for view in plan.views:
        nodes: list[Node] = []
        for key_set in view.key_sets:
            if prune_terms((Term(key_set.node, Scalar.number(1)),), changed):
                changed |= {key_set.name}
                nodes.append(key_set.node)
        terms = prune_terms(view.terms, changed)
        if not terms:
            continue
        changed |= {view.name}
        views.append(view)
        for node in (*nodes, *(term.node for term in terms)):
            for kind, relation in _reads(node, own=view.name):
                found[kind][relation] = None
    full = tuple(found["full"])
    return Effect(
        moved,
        tuple(views),
        tuple(n for n in found["looked up"] if n not in full),
        tuple(n for n in found["near"] if n not in full),
        full,
    )


def _reads(node: Node, own: str) -> Iterator[tuple[str, str]]:
    """What is read besides changes, and how. The old part of a view is its own state."""
    crossing = crossed(node)
    for read in reads(node):
        scan = read.source
        if scan.side is Side.DELTA or scan.relation == own:
            continue
        if read.lookup is not None:
            yield "looked up", scan.relation
        elif read.times or id(scan) in crossing:
            yield "near", scan.relation
        else:
            yield "full", scan.relation


def changed_inputs(plan: Plan) -> tuple[str, ...]:
    """The inputs whose changes are followed."""
    return tuple(item.name for item in plan.inputs if not item.is_static)


def effects_of(plan: Plan) -> tuple[Effect, ...]:
    """Those of each input whose changes are followed."""
    return tuple(effect_of(plan, name) for name in changed_inputs(plan))


def content(plan: Plan, view: View) -> str:
    """What an inner view has, as the begin of a sentence."""
    of = " joined with ".join(map(short, sources_of(plan, view.core)))
    keys = [k.name for k in view.state.keys]
    if view.is_bag or view.state.is_set:
        return f"the rows of {of}" if " joined " in of else f"rows of {of}"
    sums = f"sums and counts of {of}" if view.state.payload else f"counts of {of}"
    return f"{sums} by {listed(keys)}" if keys else f"totals of {of}"


def descriptions(plan: Plan) -> dict[str, str]:
    """What each inner view is and what it is for, by its relation: a sentence for people who never read a paper."""
    effects = effects_of(plan)
    return {view.name: _described(plan, view, effects) for view in plan.helpers}


def _described(plan: Plan, view: View, effects: Iterable[Effect]) -> str:
    what, sources = content(plan, view), sources_of(plan, view.core)
    what = f"{what[0].upper()}{what[1:]}"
    for_whom = [e.moved for e in effects if view.name in (*e.looked_up, *e.near, *e.full)]
    if not for_whom:
        return f"{what}, kept for {short(plan.relation)}: {view.reason}"
    strangers = [name for name in for_whom if name not in sources]
    if not strangers:
        return f"{what}, kept so that only what belongs to a changed row is computed again"
    rows, by = listed(map(short, sources)), listed(map(short, strangers), "or")
    return (
        f"{what}, kept so that a changed row of {by} finds its rows of {rows} without reading all of {rows}"
    )
