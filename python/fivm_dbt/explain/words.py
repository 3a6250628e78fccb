"""A plan in plain words: what is kept and for whom, and what the change of a row of each input does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

    >>> short("raw.`orders 2024`"), short("Orders")
    ('orders 2024', 'orders')
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


def _described(plan: Plan, view: View, effects: Sequence[Effect]) -> str:
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


def label(view: View) -> str:
    """An inner view without the name of its model."""
    return short(view.name).rpartition("__fivm_")[2]


def story(plan: Plan) -> list[str]:
    """How a model is computed, what is kept for it, and what a changed row of each input costs."""
    name, inputs = short(plan.relation), [item.name for item in plan.inputs]
    lines = [f"{name} is computed from {listed(map(short, inputs))}."]
    if plan.why_recomputed is not None:
        return [*lines, f"It is recomputed as a whole when an input changes: {plan.why_recomputed}."]
    effects = effects_of(plan)
    lines += _kept(plan, effects)
    lines += [f"When a row of {short(e.moved)} changes, {_effect(plan, e)}." for e in effects]
    static = [short(item.name) for item in plan.inputs if item.is_static]
    if static:
        lines.append(f"Of {listed(static)} no change is expected (fivm_static).")
    return lines


def _kept(plan: Plan, effects: Sequence[Effect]) -> Iterator[str]:
    is_joined = plan.top not in plan.stored
    if not plan.helpers:
        yield "Its result is kept, and no inner view."
        return
    many = f"{len(plan.helpers)} inner view{'s' if len(plan.helpers) > 1 else ''}"
    yield (
        f"Its result is joined when it is read, from {many}:"
        if is_joined
        else f"Its result is kept, and {many}:"
    )
    for number, view in enumerate(plan.helpers, start=1):
        yield f"  view {number}: {_described(plan, view, effects)}."


def _effect(plan: Plan, effect: Effect) -> str:
    """What a changed row of an input does, as the rest of a sentence."""
    if not effect.changes:
        return "nothing happens: the model does not depend on it"
    inner = [v.name for v in effect.changes if v is not plan.top]
    parts = [f"{_named(plan, inner)} {'change' if len(inner) > 1 else 'changes'} with it"] if inner else []
    if plan.top in effect.changes and plan.top in plan.stored:
        parts.append(_of_top(plan.top))
    if effect.looked_up:
        parts.append(f"some partitions of {_named(plan, effect.looked_up)} are read")
    if effect.near:
        parts.append(f"rows of {_named(plan, effect.near)} around its time are read")
    if effect.full:
        parts.append(f"! {_named(plan, effect.full)} {'are' if len(effect.full) > 1 else 'is'} read in full")
    else:
        parts.append("nothing is read in full")
    return "; ".join(parts)


def _named(plan: Plan, relations: Iterable[str]) -> str:
    """Relations, and inner views by their numbers: ``views 1 and 3``, ``orders and view 2``."""
    numbers = {view.name: str(number) for number, view in enumerate(plan.helpers, start=1)}
    wanted = list(relations)
    others = [short(name) for name in wanted if name not in numbers]
    views = [numbers[name] for name in wanted if name in numbers]
    if not views:
        return listed(others)
    return listed([*others, f"view{'s' if len(views) > 1 else ''} {listed(views)}"])


def _of_top(top: View) -> str:
    if not top.is_bag:
        return "it is added to the sums of its group"
    if any(scan.relation == top.name for term in top.terms for scan in scans(term.node)):
        return "its groups of the result are computed again"
    return "rows of the result come or go"
