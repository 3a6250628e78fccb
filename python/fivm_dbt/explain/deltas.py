"""A plan shows the deltas of its views: the factors of each term, and what it reads."""

from __future__ import annotations

from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.clock_nodes import Crossing
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Lookup
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.within import Within
from fivm_dbt.naming import old_rows
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
    return sign + term.node.formula


def _reads(plan: Plan, view: View, term: Term) -> list[str]:
    """One line per relation that the term reads besides deltas, marking what is read in full."""
    lines = []
    bounded = {n.scan: n for n in term.node.walk() if isinstance(n, Lookup)}
    near = {id(n.scan): n for n in term.node.walk() if isinstance(n, Within)}
    own = {view.name, *(v.name for v in plan.helpers)}
    crossing = {id(scan) for node in term.node.walk() if isinstance(node, Crossing) for scan in scans(node)}
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
