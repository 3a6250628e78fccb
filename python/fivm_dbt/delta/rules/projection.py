"""A projection maps each row by itself and keeps duplicates: it is linear. So are buckets, several rows for each."""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.delta.rule import delta_of
from fivm_dbt.delta.term import Derive, Term, carried
from fivm_dbt.ir.buckets import Buckets
from fivm_dbt.ir.nodes import Map


@delta_of(Map, Buckets)
def delta_of_projection(node: Map | Buckets, delta: Derive) -> tuple[Term, ...]:
    """``Δ(Π_a R) = Π_a ΔR``; the multiplicity is carried along as a column."""
    terms = []
    for term in delta(node.input):
        count, multiplicity = carried(term, node.alias)
        terms.append(Term(replace(node, input=term.node, items=node.items + count), multiplicity))
    return tuple(terms)
