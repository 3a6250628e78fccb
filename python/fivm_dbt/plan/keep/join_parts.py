"""The factors of a join belong together in parts, and are compared with other parts by columns."""

from __future__ import annotations

from collections.abc import Iterable

from fivm_dbt.delta.key_sets import equalities
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.scalar import ColumnId, Scalar


def connected(nodes: list[Node], predicates: tuple[Scalar, ...]) -> Iterable[list[Node]]:
    """The parts that predicates over these nodes alone connect."""
    parts: list[list[Node]] = []
    for node in nodes:
        touching = [p for p in parts if _are_connected(p, node, nodes, predicates)]
        parts = [p for p in parts if p not in touching]
        parts.append([*(member for part in touching for member in part), node])
    return parts


def _are_connected(part: list[Node], node: Node, nodes: list[Node], predicates: tuple[Scalar, ...]) -> bool:
    there = frozenset(c for member in part for c in member.ids)
    here = node.ids
    every = frozenset(c for n in nodes for c in n.ids)
    return any(p.columns & there and p.columns & here and p.columns <= every for p in predicates)


def compared(predicates: tuple[Scalar, ...], one: Node, other: Node) -> list[tuple[ColumnId, ColumnId]]:
    """Pairs of columns, of the one and of the other, that have to be equal."""
    ours, theirs = one.ids, other.ids
    found = []
    for left, right in equalities(predicates):
        if left in ours and right in theirs:
            found.append((left, right))
        elif right in ours and left in theirs:
            found.append((right, left))
    return found


def item_of(column: ColumnId, node: Node) -> Item:
    return next(Item(f.name, f.scalar, f.type) for f in node.fields if f.id == column)
