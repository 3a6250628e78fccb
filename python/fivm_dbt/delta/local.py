"""Operators that are local to a key K have this in common: ``Op(R) = ⊎_k Op(R[K = k])``.

Their delta recomputes the affected keys, on both sides:
``ΔOp = Op(new R ⋉ keys(ΔR)) − Op(old R ⋉ keys(ΔR))``.

Where the operator reaches a fixed time around each row, K has a block of time, and the rows are those of the blocks
around it: ``ΔOp = Op(new R ⋉ near(ΔR)) ⋉ keys(ΔR) − …`` (:mod:`fivm_dbt.delta.nearby`).
"""

from __future__ import annotations

from fivm_dbt.catalog.types import INT
from fivm_dbt.delta.nearby import (
    affected_blocks,
    over_nearby,
    rows_of_blocks,
    rows_of_windows,
    rows_on_days,
    running_rows,
)
from fivm_dbt.delta.term import Term, at_side, scans
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Days
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Map, UnionAll
from fivm_dbt.ir.one_sided import IfChanged, Restrict
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.naming import PREFIX


def affected_keys(node: Local, changed: tuple[Term, ...]) -> Node:
    """``keys(ΔR)``: each key that occurs in a changed row, once; of an empty key, one row if there is any change."""
    alias = f"{node.alias}_changed"
    if isinstance(node, Window) and node.near is not None:
        return affected_blocks(node, changed, alias)
    items = tuple(Item(f"key_{i + 1}", k.value, k.type) for i, k in enumerate(node.key))
    if not items:
        items = (Item(f"{PREFIX}any", Scalar.number(1), INT),)
    branches = tuple(Map(term.node, alias, items) for term in changed)
    return Distinct(branches[0] if len(branches) == 1 else UnionAll(branches, alias))


def if_any_changed(rows: Node, node: Local, changed: tuple[Term, ...]) -> Node | None:
    """``rows`` where there is a change at all, of an operator over all rows together; None of any other one.

    Nobody has to look at the change for it, as each term is one as it is: not where some of it is joined or filtered
    first, so that nothing may be left.
    """
    if node.key or node.near is not None:
        return None
    if not all(n.keeps_rows for term in changed for n in term.node.walk() if n.inputs):
        return None
    return IfChanged(rows, tuple(sorted({scan.relation for term in changed for scan in scans(term.node)})))


def recomputed(node: Local, changed: tuple[Term, ...], side: Side) -> Node:
    """``Op(R ⋉ keys(ΔR))`` with R on one side."""
    whole = if_any_changed(node.with_inputs((at_side(node.input, side),)), node, changed)
    if whole is not None:
        return whole
    keys = affected_keys(node, changed)
    if node.is_global:
        # Not the rows are restricted but the total, to there being a change at all.
        return Restrict(node.with_inputs((at_side(node.input, side),)), keys, ())
    pairs = tuple((k.value, f.scalar) for k, f in zip(node.key, keys.fields, strict=False))
    if node.near is None:
        return node.with_inputs((Restrict(at_side(node.input, side), keys, pairs),))
    if isinstance(node.near, Days):
        return node.with_inputs((rows_on_days(node, node.near, changed, side),))
    if not isinstance(node, Window):
        of_blocks = rows_of_blocks(node, node.near, keys, side)
        if of_blocks is not None:
            return node.with_inputs((of_blocks,))
        rows = rows_of_windows(node, node.near, changed, side)
        return node.with_inputs((Restrict(rows, keys, pairs),))
    if node.near.running is not None:
        return running_rows(node, changed, side)
    over = over_nearby(node, node.near, changed, side)
    # Rows in the blocks around the affected ones are read for these, and not shown.
    shown = {i.value: Scalar.column(node.alias, i.name) for i in node.items}
    return Restrict(over, keys, tuple((shown[value], key) for value, key in pairs))
