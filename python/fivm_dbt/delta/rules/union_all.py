"""A bag union adds multiplicities: it is linear."""

from __future__ import annotations

from fivm_dbt.delta.rule import delta_of
from fivm_dbt.delta.term import Derive, Term, carried
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Map, UnionAll


@delta_of(UnionAll)
def delta_of_union_all(node: UnionAll, delta: Derive) -> tuple[Term, ...]:
    """``Δ(R ⊎ S) = ΔR ⊎ ΔS``, each renamed to the union's columns."""
    terms = []
    for branch in node.branches:
        for term in delta(branch):
            items = tuple(
                Item(field.name, inner.scalar, field.type)
                for field, inner in zip(node.fields, branch.fields, strict=True)
            )
            count, multiplicity = carried(term, node.alias)
            terms.append(Term(Map(term.node, node.alias, items + count), multiplicity))
    return tuple(terms)
