"""Window functions are local to their PARTITION BY: recompute the partitions that have a changed row."""

from __future__ import annotations

from fivm_dbt.delta.local import restricted
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.nodes import Side, Window
from fivm_dbt.ir.scalar import Scalar


def delta_of_window(node: Window, delta: Derive) -> tuple[Term, ...]:
    """``ΔW_K(R) = W_K(new R ⋉ keys(ΔR)) − W_K(old R ⋉ keys(ΔR))``; without PARTITION BY all rows are one partition."""
    changed = delta(node.input)
    if not changed:
        return ()
    return tuple(
        Term(node.with_inputs((restricted(node, changed, side),)), Scalar.number(sign))
        for side, sign in ((Side.NEW, 1), (Side.OLD, -1))
    )
