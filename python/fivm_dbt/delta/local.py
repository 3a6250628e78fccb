"""What operators have in common that are local to a key K: ``Op(R) = ⊎_k Op(R[K = k])``.

Their delta recomputes the affected keys, on both sides:
``ΔOp = Op(new R ⋉ keys(ΔR)) − Op(old R ⋉ keys(ΔR))``.
"""

from __future__ import annotations

from fivm_dbt.catalog.types import INT
from fivm_dbt.delta.term import Derive, Term, at_side
from fivm_dbt.ir.match import Match
from fivm_dbt.ir.nodes import Aggregate, Distinct, Item, Map, Node, Restrict, Side, UnionAll, Window
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PREFIX

Local = Aggregate | Window | Match


def local_key(node: Local) -> tuple[Item, ...]:
    """K: the GROUP BY of an aggregate, the PARTITION BY of window functions and of patterns."""
    return node.keys if isinstance(node, Aggregate) else node.partition


def affected_keys(node: Local, changed: tuple[Term, ...]) -> Node:
    """``keys(ΔR)``: each key that occurs in a changed row, once; of an empty key, one row if there is any change."""
    alias = f"{node.alias}_changed"
    items = tuple(Item(f"key_{i + 1}", k.value, k.type) for i, k in enumerate(local_key(node)))
    if not items:
        items = (Item(f"{PREFIX}any", Scalar.number(1), INT),)
    branches = tuple(Map(term.node, alias, items) for term in changed)
    return Distinct(branches[0] if len(branches) == 1 else UnionAll(branches, alias))


def restricted(node: Local, changed: tuple[Term, ...], side: Side) -> Node:
    """``R ⋉ keys(ΔR)`` with R on one side."""
    keys = affected_keys(node, changed)
    pairs = tuple((k.value, f.scalar) for k, f in zip(local_key(node), keys.fields, strict=False))
    return Restrict(at_side(node.input, side), keys, pairs)


def delta_by_keys(node: Local, delta: Derive) -> tuple[Term, ...]:
    """``ΔOp = Op(new R ⋉ keys(ΔR)) − Op(old R ⋉ keys(ΔR))``."""
    changed = delta(node.input)
    if not changed:
        return ()
    return tuple(
        Term(node.with_inputs((restricted(node, changed, side),)), Scalar.number(sign))
        for side, sign in ((Side.NEW, 1), (Side.OLD, -1))
    )
