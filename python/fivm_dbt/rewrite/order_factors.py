"""A join's factors are put in order: the change first, then whatever is connected to what is already there."""

from __future__ import annotations

from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Join, UnionAll
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar


def order_factors(node: Node) -> Node:
    """``node`` with each join starting at the smallest thing known, a delta, and avoiding products where it can.

    The result of a join does not depend on the order; its cost does, and a reader follows the change through it.
    """
    node = node.with_inputs(tuple(order_factors(child) for child in node.inputs))
    return Join(_ordered(node), node.predicates) if isinstance(node, Join) else node


def _ordered(join: Join) -> tuple[Node, ...]:
    rest = sorted(join.factors, key=lambda f: not _has_delta(f))
    ordered = [rest.pop(0)]
    while rest:
        known = {f.table for factor in ordered for f in factor.fields}
        chosen = next((f for f in rest if is_connected(f, known, join.predicates)), rest[0])
        rest.remove(chosen)
        ordered.append(chosen)
    return tuple(ordered)


def _has_delta(node: Node) -> bool:
    if isinstance(node, Scan):
        return node.side is Side.DELTA
    if isinstance(node, UnionAll):
        return all(_has_delta(branch) for branch in node.branches)
    return any(_has_delta(child) for child in node.inputs)


def is_connected(factor: Node, known: set[str], predicates: tuple[Scalar, ...]) -> bool:
    """Whether some predicate needs just this factor and those already there."""
    own = {f.table for f in factor.fields}
    return any(p.tables & own and p.tables & known and p.tables <= own | known for p in predicates)
