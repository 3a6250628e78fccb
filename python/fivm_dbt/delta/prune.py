"""Binding a delta to what did change: terms over an unchanged input's delta, or due to the clock, vanish."""

from __future__ import annotations

from fivm_dbt.delta.term import Term
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Crossing, Filter, Join, OuterJoin, Restrict, Scan, SemiJoin, UnionAll
from fivm_dbt.ir.runs import Runs
from fivm_dbt.naming import CLOCK


def prune_terms(terms: tuple[Term, ...], changed: frozenset[str]) -> tuple[Term, ...]:
    """The terms that can have rows when just the relations in ``changed`` changed, without their empty branches.

    CLOCK is among them where the time is another; what it has an effect on is then a plain condition.
    """
    return tuple(
        Term(node, term.multiplicity) for term in terms if (node := _prune(term.node, changed)) is not None
    )


def _prune(node: Node, changed: frozenset[str]) -> Node | None:
    """``node`` without its empty parts, None if it is empty itself."""
    if isinstance(node, Scan):
        return None if node.side is Side.DELTA and node.relation not in changed else node
    if isinstance(node, Crossing):
        rows = _prune(node.input, changed) if CLOCK in changed else None
        return Filter(rows, node.predicates) if rows is not None else None
    inputs = tuple(_prune(child, changed) for child in node.inputs)
    kept = tuple(child for child in inputs if child is not None)
    if isinstance(node, UnionAll):
        return None if not kept else node.with_inputs(kept) if len(kept) > 1 else _only_branch(node, kept[0])
    if len(kept) == len(inputs):
        return node.with_inputs(kept)
    if isinstance(node, Aggregate) and node.is_global:
        raise ValueError("a global aggregate over nothing has a row: its input cannot be pruned")
    if isinstance(node, (Join, Restrict, Runs)) or len(inputs) == 1:
        return None
    if isinstance(node, (OuterJoin, SemiJoin)):
        return _without_a_side(node, *inputs)
    raise TypeError(f"prune_terms does not know {type(node).__name__}")


def _only_branch(node: UnionAll, branch: Node) -> Node:
    """The branch that is left, under the union's name so that references above stay valid."""
    if tuple(f.id for f in branch.fields) == tuple(f.id for f in node.fields):
        return branch
    return UnionAll((branch,), node.alias)


def _without_a_side(node: OuterJoin | SemiJoin, left: Node | None, right: Node | None) -> Node | None:
    """Over no left rows there is nothing; over no right rows a semijoin is empty and an antijoin keeps all."""
    if left is None or (isinstance(node, SemiJoin) and not node.anti):
        return None
    if isinstance(node, SemiJoin):
        return left
    raise ValueError(f"the right side of an outer join is never a change alone: {right}")
