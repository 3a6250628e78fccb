"""A plan shows the deltas of its views: the factors of each term, and what it reads."""

from __future__ import annotations

from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Filter, Join, Lookup, OuterJoin, Restrict, Scan, SemiJoin, UnionAll, Values
from fivm_dbt.ir.runs import Runs
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.within import Within
from fivm_dbt.naming import CLOCK, old_rows
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View


def delta_lines(plan: Plan, moved: str) -> list[str]:
    """The terms that are left when just this input, or the clock, changed, view by view, with what each reads."""
    changed = frozenset({moved, old_rows(moved)})
    lines = []
    for view in plan.views:
        for key_set in view.key_sets:
            if prune_terms((Term(key_set.node, Scalar.number(1)),), changed):
                changed |= {key_set.name}
        terms = prune_terms(view.terms, changed)
        if not terms:
            continue
        changed |= {view.name}
        if len(plan.views) > 1:
            lines.append(f"{view.name}:")
        for number, term in enumerate(terms, start=1):
            lines.append(f"term {number}: {_product(term)}")
            lines += [f"  {line}" for line in _reads(plan, view, term)]
    return lines or ["no term: this input cannot change the model"]


def _product(term: Term) -> str:
    """``+1 × [Δf ⋈ old a]``: the factors with their sides, deltas first."""
    multiplicity = term.multiplicity.as_number
    sign = "" if multiplicity is None else f"{multiplicity:+d} × "
    return sign + _factors(term.node)


def _factors(node: Node) -> str:
    if isinstance(node, Scan):
        return f"{_side(node.side)}{node.relation} {node.alias}"
    if isinstance(node, Values):
        return f"rows {node.alias}"
    if isinstance(node, Restrict):
        keys = ", ".join(left.sql for left, _ in node.keys) or "anything"
        changed = ", ".join(sorted({f"Δ{s.relation}" for s in scans(node.right) if s.side is Side.DELTA}))
        return f"{_factors(node.left)} ⋉ keys({keys}) of {changed}"
    if isinstance(node, Aggregate):
        keys = ", ".join(k.value.sql for k in node.keys) or "all"
        return f"γ[{keys}]({_factors(node.input)})"
    if isinstance(node, Runs):
        return f"runs({' from '.join(_factors(child) for child in node.inputs)})"
    if _is_crossing(node):
        return f"σ[old time → new time]({_factors(node.inputs[0])})"
    if len(node.inputs) == 1:
        return _factors(node.inputs[0])
    return "(" + f" {_symbol(node)} ".join(_factors(child) for child in node.inputs) + ")"


def _symbol(node: Node) -> str:
    if isinstance(node, SemiJoin):
        return "▷" if node.anti else "⋉"
    return {Join: "⋈", OuterJoin: "⟕", UnionAll: "⊎"}[type(node)]


def _is_crossing(node: Node) -> bool:
    """Whether these are the rows for which something is different because time passed."""
    if not isinstance(node, Filter):
        return False
    tables = {table for predicate in node.predicates for table in predicate.tables}
    return {f"{CLOCK}_{side.value}" for side in (Side.OLD, Side.NEW)} <= tables


def _side(side: Side) -> str:
    return "Δ" if side is Side.DELTA else f"{side.value} "


def _reads(plan: Plan, view: View, term: Term) -> list[str]:
    """One line per relation that the term reads besides deltas, marking what is read in full."""
    lines = []
    bounded = {n.scan: n for n in term.node.walk() if isinstance(n, Lookup)}
    near = {id(n.scan): n for n in term.node.walk() if isinstance(n, Within)}
    own = {view.name, *(v.name for v in plan.helpers)}
    crossing = {id(scan) for node in term.node.walk() if _is_crossing(node) for scan in scans(node)}
    for scan in scans(term.node):
        if scan.side is Side.DELTA:
            continue
        side = f"{scan.side.value} {scan.relation}"
        if id(scan) in crossing and scan.side is Side.OLD:
            lines.append(f"reads of {side} what enters or leaves as time passes")
        elif scan in bounded:
            keys = ", ".join(ours for ours, _ in bounded[scan].keys)
            when = "".join(f", {b}" for b in near[id(scan)].bounds) if id(scan) in near else ""
            lines.append(f"looks up {side} in the partitions of the affected {keys}{when}")
        elif id(scan) in near:
            lines += [f"reads {side} where {b}" for b in near[id(scan)].bounds]
        elif scan.relation in own:
            lines.append(
                f"reads {side} in full: the change does not tell in which partitions its partners lie"
            )
        else:
            lines.append(f"reads {side} in full: no inner view holds what is needed of it")
    return list(dict.fromkeys(lines)) or ["reads nothing but the change"]
