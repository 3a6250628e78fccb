"""An aggregate below other operators is local to its group key: recompute the affected groups.

The aggregate at the root of a model is not handled here: its payloads are maintained by addition in the state.
"""

from __future__ import annotations

from fivm_dbt.catalog.types import INT
from fivm_dbt.delta.term import Derive, Term, at_side
from fivm_dbt.ir.nodes import Aggregate, Distinct, Item, Map, Node, SemiJoin, Side, UnionAll
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PREFIX


def delta_of_aggregate(node: Aggregate, delta: Derive) -> tuple[Term, ...]:
    """``Δγ_K(R) = γ_K(new R ⋉ keys(ΔR)) − γ_K(old R ⋉ keys(ΔR))``.

    Exact because ``γ_K(R) = ⊎_k γ(R[K = k])``: groups without a changed row are the same before and after. Without
    keys there is one group, ``γ(new R) − γ(old R)``.
    """
    changed = delta(node.input)
    if not changed:
        return ()
    keys = affected_keys(node, changed)
    terms = []
    for side, sign in ((Side.NEW, 1), (Side.OLD, -1)):
        source = at_side(node.input, side)
        if node.is_global:
            # The semijoin without keys asks only whether anything changed.
            total = Aggregate(source, node.alias, node.keys, node.calls, node.is_global)
            terms.append(Term(SemiJoin(total, keys, ()), Scalar.number(sign)))
            continue
        pairs = tuple((k.value, f.scalar) for k, f in zip(node.keys, keys.fields, strict=True))
        restricted = SemiJoin(source, keys, pairs)
        terms.append(Term(Aggregate(restricted, node.alias, node.keys, node.calls), Scalar.number(sign)))
    return tuple(terms)


def affected_keys(node: Aggregate, changed: tuple[Term, ...]) -> Node:
    """``keys(ΔR)``: each group key that occurs in a changed row, once."""
    alias = f"{node.alias}_changed"
    items = tuple(Item(f"key_{i + 1}", k.value, k.type) for i, k in enumerate(node.keys))
    if not items:
        items = (Item(f"{PREFIX}any", Scalar.number(1), INT),)
    branches = tuple(Map(term.node, alias, items) for term in changed)
    return Distinct(branches[0] if len(branches) == 1 else UnionAll(branches, alias))
