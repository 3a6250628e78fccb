"""A generator makes rows of each row by itself: it is linear."""

from __future__ import annotations

from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.nodes import Explode


def delta_of_explode(node: Explode, delta: Derive) -> tuple[Term, ...]:
    """``Δ(explode(R)) = explode(ΔR)``."""
    return tuple(Term(node.with_inputs((t.node,)), t.multiplicity) for t in delta(node.input))
