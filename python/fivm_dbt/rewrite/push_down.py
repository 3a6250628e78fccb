"""Conditions, and semi and anti joins, are pushed below joins, to the rows that they choose.

``σ_p(R op S) = σ_p(R) op S`` where ``p`` is about columns of R alone and ``op`` is a left, semi or anti join. And
``(R ⋈ S) op_p T = (R op_p T) ⋈ S`` where ``op`` is a semi or anti join and ``p`` compares columns of R and T alone: a
row of the join stays or goes with its row of R, as often as it is there. A change of the right side then looks for
rows of R, of which there are fewer, and narrower ones.
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.ir.clock import clock_kinds
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter
from fivm_dbt.ir.one_sided import OneSided, SemiJoin
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rewrite.flatten_joins import joined, parts_of_join


def push_down(node: Node) -> Node:
    """``node`` with conditions on the left rows of one-sided joins, and these joins on the factors that they choose."""
    filtered, predicates = parts_of_join(node)
    if len(filtered) == 1 and filtered != (node,) and isinstance(filtered[0], OneSided):
        node = _filtered(filtered[0], predicates)
    node = node.with_inputs(tuple(push_down(child) for child in node.inputs))
    return _on_factor(node) if isinstance(node, SemiJoin) else node


def _filtered(node: Node, predicates: tuple[Scalar, ...]) -> Node:
    """``σ(node)``, with as much of the condition below one-sided joins as is about their left rows."""
    if not isinstance(node, OneSided):
        factors, others = parts_of_join(node)
        return joined(factors, (*others, *predicates)) if predicates else node
    own = tuple(p for p in predicates if can_pass(p) and p.columns <= node.left.ids)
    rest = tuple(p for p in predicates if p not in own)
    below = replace(node, left=_filtered(node.left, own))
    return Filter(below, rest) if rest else below


def can_pass(value: Scalar) -> bool:
    """Whether it may be asked of rows of which it would not be asked; the clock is separated from where it stands."""
    return bool(value.columns) and not value.may_raise and not clock_kinds(value)


def _on_factor(node: SemiJoin) -> Node:
    """A join that is filtered by other factors has fewer rows than the one that is chosen from: it stays below."""
    factors, predicates = node.left.joined()
    compared = frozenset(c for p in node.predicates for c in p.columns) - node.right.ids
    chosen = next((f for f in factors if compared and compared <= f.ids), None)
    if chosen is None or len(factors) == 1:
        return node
    own = tuple(p for p in predicates if can_pass(p) and p.columns <= chosen.ids)
    others = tuple(p for p in predicates if p not in own)
    if any(p.columns <= f.ids for p in others for f in factors):
        return node
    rows = replace(node, left=_filtered(chosen, own))
    return joined(tuple(rows if f is chosen else f for f in factors), others)
