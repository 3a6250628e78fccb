"""A term of a delta: a relation whose rows count with a multiplicity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fivm_dbt.ir.nodes import Node, Scan, Side
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class Term:
    """Rows of ``node``, each with ``multiplicity`` (an expression over the node's fields, or a constant).

    A delta is the bag union of its terms. Every term reads the change of at least one input, so that it vanishes
    when none of those changed.
    """

    node: Node
    multiplicity: Scalar


class Derive(Protocol):
    """The delta of an operator's input, given to a rule."""

    def __call__(self, node: Node) -> tuple[Term, ...]: ...


def at_side(node: Node, side: Side) -> Node:
    """``node`` with every input read on ``side``."""
    if isinstance(node, Scan):
        return Scan(node.relation, node.alias, node.columns, side)
    return node.with_inputs(tuple(at_side(child, side) for child in node.inputs))


def scans(node: Node) -> tuple[Scan, ...]:
    """The scans below ``node``, left to right."""
    if isinstance(node, Scan):
        return (node,)
    return tuple(scan for child in node.inputs for scan in scans(child))
