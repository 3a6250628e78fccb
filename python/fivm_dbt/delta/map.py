"""A projection maps each row by itself and keeps duplicates: it is linear."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT


def delta_of_map(node: Map, delta: Derive) -> tuple[Term, ...]:
    """``Δ(Π_a R) = Π_a ΔR``; the multiplicity is carried along as a column."""
    terms = []
    for term in delta(node.input):
        constant = term.multiplicity.as_number is not None
        count = () if constant else (Item(COUNT, term.multiplicity, BIGINT),)
        multiplicity = term.multiplicity if constant else Scalar.column(node.alias, COUNT)
        terms.append(Term(Map(term.node, node.alias, node.items + count), multiplicity))
    return tuple(terms)
