"""A plan shows the deltas of its views: the factors of each term, and what it reads."""

from __future__ import annotations

from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, crossed
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.reads import reads
from fivm_dbt.ir.scalar import Scalar
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
        eager = view.eager_delta(changed)
        terms = prune_terms(view.terms, changed) if eager is None else eager.terms
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
    own = {view.name, *(v.name for v in plan.helpers)}
    crossing = crossed(term.node)
    for read in reads(term.node):
        scan = read.source
        if scan.side is Side.DELTA:
            continue
        side = f"{scan.side.value} {scan.relation}"
        if id(scan) in crossing and scan.side is Side.OLD:
            lines.append(f"reads of {side} what enters or leaves as time passes")
        elif read.lookup is not None:
            keys = ", ".join(ours for ours, _ in read.lookup.keys)
            when = "".join(f", {b}" for b in read.times)
            lines.append(f"looks up {side} in the partitions of the affected {keys}{when}")
        elif read.times:
            lines += [f"reads {side} where {b}" for b in read.times]
        elif scan.relation in own:
            lines.append(
                f"reads {side} in full: the change does not tell in which partitions its partners lie"
            )
        else:
            lines.append(f"reads {side} in full: no inner view holds what is needed of it")
    return list(dict.fromkeys(lines)) or ["reads nothing but the change"]
