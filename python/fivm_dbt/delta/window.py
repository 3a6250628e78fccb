"""Window functions are local to their PARTITION BY: recompute the partitions that have a changed row."""

from __future__ import annotations

from fivm_dbt.delta.local import delta_by_keys
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.nodes import Window


def delta_of_window(node: Window, delta: Derive) -> tuple[Term, ...]:
    """``ΔW_K(R) = W_K(new R ⋉ keys(ΔR)) − W_K(old R ⋉ keys(ΔR))``; without PARTITION BY all rows are one partition."""
    return delta_by_keys(node, delta)
