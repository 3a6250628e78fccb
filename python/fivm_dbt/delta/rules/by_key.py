"""Aggregates below other operators, windows and patterns are local to a key: changed keys are recomputed.

The aggregate at the root of a model is not handled here: its payloads are maintained by addition in the state.
"""

from __future__ import annotations

from fivm_dbt.delta.local import recomputed
from fivm_dbt.delta.rule import delta_of, told_of
from fivm_dbt.delta.term import Derive, Term, read_by
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.scalar import Scalar


@delta_of(Local)
def delta_by_key(node: Local, delta: Derive) -> tuple[Term, ...]:
    """``ΔOp_K(R) = Op_K(new R ⋉ keys(ΔR)) − Op_K(old R ⋉ keys(ΔR))``.

    Exact because ``Op_K(R) = ⊎_k Op(R[K = k])``: keys without a changed row are the same before and after. Without a
    key all rows are one, and of an aggregate there is a row over nothing too: ``γ(new R) − γ(old R)``. A late row may
    make other matches of a pattern of all rows behind it, so that nothing less than the key is computed anew.
    """
    changed = delta(node.input)
    if not changed:
        return ()
    sides = ((Side.NEW, 1), (Side.OLD, -1))
    return tuple(Term(recomputed(node, changed, side), Scalar.number(sign)) for side, sign in sides)


@told_of(Local)
def told_of_local(node: Local, is_own: bool) -> str:
    keys = ", ".join(k.value.sql for k in node.key) or "all rows are one"
    old = "the old part read from the own state" if is_own else "the old part computed again"
    return f"affected keys ({keys}), re-evaluated over {read_by(node.input)}; {old}"
