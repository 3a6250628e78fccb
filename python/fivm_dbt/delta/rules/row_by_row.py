"""Filters and generators look at one row and pass it on: they are linear."""

from __future__ import annotations

from fivm_dbt.delta.rule import delta_of
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.nodes import Explode, Filter


@delta_of(Filter, Explode)
def delta_row_by_row(node: Filter | Explode, delta: Derive) -> tuple[Term, ...]:
    """``Δ(σ_p R) = σ_p ΔR`` and ``Δ(explode(R)) = explode(ΔR)``."""
    return tuple(Term(node.with_inputs((t.node,)), t.multiplicity) for t in delta(node.input))
