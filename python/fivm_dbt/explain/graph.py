"""A plan becomes a graph in DOT: inputs, inner views, the model, and the ways that changes take."""

from __future__ import annotations

from collections.abc import Iterator

import graphviz

from fivm_dbt.delta.term import scans
from fivm_dbt.explain.view_trees import trees_of
from fivm_dbt.ir.higher_order import HigherOrder
from fivm_dbt.ir.node import Side
from fivm_dbt.naming import split_name
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.model.view import View

_INPUT = {"shape": "ellipse"}
_VIEW = {"shape": "box", "peripheries": "2"}
_STATIC = {"style": "dashed"}
_RESULT = {"shape": "box", "style": "rounded"}


def dot(plan: Plan) -> str:
    """The plan in Graphviz's language.

    Inputs are ellipses, dashed if they are static; views are boxes with a double border, each with its keys, what it
    adds up, and why it is kept; a result that is joined when it is read has round corners. A solid edge is a way that
    a change takes; a dashed one leads from a view to one whose deltas look it up.
    """
    graph = graphviz.Digraph(
        split_name(plan.relation)[-1],
        graph_attr={"rankdir": "BT", "labelloc": "t", "label": _lines(plan.relation, *_orders(plan))},
        node_attr={"fontname": "sans-serif"},
        edge_attr={"fontname": "sans-serif"},
    )
    for item in plan.inputs:
        label = _lines(item.name, ", ".join(c.name for c in item.columns))
        graph.node(_id(item.name), label, **_INPUT, **(_STATIC if item.is_static else {}))
    for view in plan.views:
        style = _RESULT if view not in plan.stored else _VIEW
        graph.node(_id(view.name), _label(plan, view), **style)
        for relation, is_change in _read(plan, view):
            graph.edge(_id(relation), _id(view.name), **({} if is_change else _STATIC))
    source: str = graph.source
    return source


def _orders(plan: Plan) -> Iterator[str]:
    for tree in trees_of(plan):
        yield f"{tree.block}: {tree.chosen if tree.order is None else tree.order or 'no variable'}"


def _label(plan: Plan, view: View) -> str:
    is_top = view is plan.top
    name = split_name(plan.relation if is_top else view.name)[-1]
    keys = ", ".join(k.name for k in view.state.keys) or "one row"
    payload = ", ".join(view.state.stored_names)
    if plan.why_recomputed is not None:
        return _lines(name, f"recomputed: {plan.why_recomputed}")
    return _lines(name, f"[{keys}] → {payload}", view.reason)


def _read(plan: Plan, view: View) -> Iterator[tuple[str, bool]]:
    """What a view is computed from, and whether its change is one of the view; else it is looked up only."""
    core = view.core
    if not isinstance(plan, MaintainedPlan):
        yield from ((item.name, True) for item in plan.inputs)
        return
    if isinstance(core, HigherOrder):
        changed = {s.relation for t in core.triggers for s in scans(t.changed)}
        others = {s.relation for t in core.triggers for other in t.others for s in scans(other)}
        yield from ((name, name in changed) for name in sorted(changed | others))
        return
    if view not in plan.stored:
        yield from ((name, True) for name in sorted({s.relation for s in scans(core)}))
        return
    nodes = (*(t.node for t in view.terms), *(k.node for k in view.key_sets))
    changed = {s.relation for node in nodes for s in scans(node) if s.side is Side.DELTA}
    yield from ((name, name in changed) for name in sorted({s.relation for s in scans(core)}))


def _id(relation: str) -> str:
    # A colon would be the port of a node.
    return relation.replace(":", "_")


def _lines(*lines: str) -> str:
    return "\n".join(graphviz.escape(line) for line in lines)
