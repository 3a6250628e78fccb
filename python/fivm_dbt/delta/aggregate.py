"""An aggregate below other operators is local to its group key: recompute the affected groups.

The aggregate at the root of a model is not handled here: its payloads are maintained by addition in the state.
"""

from __future__ import annotations

from fivm_dbt.delta.local import affected_keys, recomputed
from fivm_dbt.delta.term import Derive, Term, at_side
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Restrict
from fivm_dbt.ir.scalar import Scalar


def delta_of_aggregate(node: Aggregate, delta: Derive) -> tuple[Term, ...]:
    """``Δγ_K(R) = γ_K(new R ⋉ keys(ΔR)) − γ_K(old R ⋉ keys(ΔR))``.

    Exact because ``γ_K(R) = ⊎_k γ(R[K = k])``: groups without a changed row are the same before and after. Without
    keys there is one group, ``γ(new R) − γ(old R)``, which is there over nothing too.
    """
    changed = delta(node.input)
    if not changed:
        return ()
    terms = []
    for side, sign in ((Side.NEW, 1), (Side.OLD, -1)):
        if node.is_global:
            # Not the rows are restricted but the total, to there being a change at all.
            total = node.with_inputs((at_side(node.input, side),))
            terms.append(Term(Restrict(total, affected_keys(node, changed), ()), Scalar.number(sign)))
        else:
            terms.append(Term(recomputed(node, changed, side), Scalar.number(sign)))
    return tuple(terms)
