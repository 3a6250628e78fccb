"""A filter looks at one row: it is linear."""

from __future__ import annotations

from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.nodes import Filter


def delta_of_filter(node: Filter, delta: Derive) -> tuple[Term, ...]:
    """``Δ(σ_p R) = σ_p ΔR``."""
    return tuple(Term(Filter(t.node, node.predicates), t.multiplicity) for t in delta(node.input))
