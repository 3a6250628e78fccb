"""A bag union adds multiplicities: it is linear."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Map, UnionAll
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT


def delta_of_union_all(node: UnionAll, delta: Derive) -> tuple[Term, ...]:
    """``Δ(R ⊎ S) = ΔR ⊎ ΔS``, each renamed to the union's columns."""
    terms = []
    for branch in node.branches:
        for term in delta(branch):
            items = tuple(
                Item(field.name, inner.scalar, field.type)
                for field, inner in zip(node.fields, branch.fields, strict=True)
            )
            constant = term.multiplicity.as_number is not None
            count = () if constant else (Item(COUNT, term.multiplicity, BIGINT),)
            multiplicity = term.multiplicity if constant else Scalar.column(node.alias, COUNT)
            terms.append(Term(Map(term.node, node.alias, items + count), multiplicity))
    return tuple(terms)
