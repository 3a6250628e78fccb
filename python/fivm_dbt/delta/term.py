"""A term of a delta is a relation whose rows count with a multiplicity."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.clock import on_side
from fivm_dbt.ir.clock_nodes import ClockFilter, ClockMap, Crossing
from fivm_dbt.ir.higher_order import Defined
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import COUNT


@dataclass(frozen=True)
class Term:
    """Rows of ``node``, each with ``multiplicity`` (an expression over the node's fields, or a constant).

    A delta is the bag union of its terms. Every term reads the change of at least one input or is due to the clock, so
    that it vanishes when none of those changed.

    Some columns of the operator are ``renamed`` in it, where they come staged with others.
    """

    node: Node
    multiplicity: Scalar
    renamed: tuple[tuple[ColumnId, Scalar], ...] = ()

    def own(self, value: Scalar) -> Scalar:
        """An expression over the columns of the operator, over those of the term."""
        return value.substitute(dict(self.renamed).get) if self.renamed else value


class Derive(Protocol):
    """The delta of an operator's input, given to a rule. Inputs in ``static`` never change."""

    @property
    def static(self) -> frozenset[str]: ...

    def __call__(self, node: Node) -> tuple[Term, ...]: ...


def carried(term: Term, alias: str) -> tuple[tuple[Item, ...], Scalar]:
    """What a projection ``alias`` needs beside its own columns for a term's multiplicity, and this above it."""
    if term.multiplicity.as_number is not None:
        return (), term.multiplicity
    return (Item(COUNT, term.multiplicity, BIGINT),), Scalar.column(alias, COUNT)


def at_side(node: Node, side: Side) -> Node:
    """``node`` with every input read on ``side``, at the time of that side."""
    if isinstance(node, Scan):
        return Scan(node.relation, node.alias, node.columns, side)
    if isinstance(node, Defined):
        return at_side(node.definition, side)
    if isinstance(node, ClockFilter):
        return Filter(at_side(node.input, side), tuple(on_side(p, side) for p in node.predicates))
    if isinstance(node, ClockMap):
        return Map(at_side(node.input, side), node.alias, items_at(node.items, side))
    return node.with_inputs(tuple(at_side(child, side) for child in node.inputs))


def read_before(node: Node, relations: Collection[str]) -> Node:
    """``node`` with the old rows of some relations in the place of the new ones."""
    if isinstance(node, Scan):
        is_one = node.relation in relations and node.side is Side.NEW
        return Scan(node.relation, node.alias, node.columns, Side.OLD) if is_one else node
    return node.with_inputs(tuple(read_before(child, relations) for child in node.inputs))


def items_at(items: tuple[Item, ...], side: Side) -> tuple[Item, ...]:
    """Computed columns at the time of one side."""
    return tuple(Item(i.name, on_side(i.value, side), i.type) for i in items)


def read_by(node: Node) -> str:
    """The relations below an operator, for people."""
    return ", ".join(dict.fromkeys(s.relation for s in scans(node))) or "rows of the query"


def crossed(node: Node) -> frozenset[int]:
    """The scans, by identity, of which only the rows count for which something is different because the clock moved."""
    return frozenset(id(s) for n in node.walk() if isinstance(n, Crossing) for s in scans(n))


def scans(node: Node) -> tuple[Scan, ...]:
    """The scans below ``node``, left to right."""
    return tuple(n for n in node.walk() if isinstance(n, Scan))
