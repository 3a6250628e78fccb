"""The nearest blocks of time that have rows of a key, before and after those of a set."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.instants import day_of
from fivm_dbt.ir.near import Beside
from fivm_dbt.ir.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Item,
    Join,
    Map,
    Node,
    Restrict,
    Scan,
    Side,
    UnionAll,
)
from fivm_dbt.ir.scalar import Scalar

_NEAREST = "nearest"


def with_neighbours(
    blocks: Node, of: Distinct | None, beside: Beside, side: Side, alias: str, *, earlier: bool, later: bool
) -> UnionAll:
    """``blocks``, which has a key, a block and its day, and of each the nearest one earlier, or later, or both.

    ``next(B) = {(K, min{b′ : (K, b′) ∈ D, b′ > b}) : (K, b) ∈ B}`` with D the blocks that ``side`` has, of which no
    keys but ``of`` are looked up.
    """
    every = tuple(Item(f.name, f.scalar, f.type) for f in blocks.fields)
    branches = [Map(blocks, alias, every)]
    if earlier:
        branches.append(_nearest(blocks, of, beside, side, alias, "earlier"))
    if later:
        branches.append(_nearest(blocks, of, beside, side, alias, "later"))
    return UnionAll(tuple(branches), alias)


def _nearest(blocks: Node, of: Distinct | None, beside: Beside, side: Side, alias: str, where: str) -> Map:
    own, there, found = (f"{alias}_{where}_{name}" for name in ("of", "there", "found"))
    *keys, block, _ = blocks.fields
    names = tuple(f"key_{i + 1}" for i in range(len(keys)))
    named = tuple(Item(n, f.scalar, f.type) for n, f in zip(names, keys, strict=True))
    each = Aggregate(blocks, own, (*named, Item("block", block.scalar, BIGINT)), ())
    columns = (*beside.keys, (beside.block, BIGINT))
    days: Node = Scan(beside.relation, there, columns, side)
    if of is not None:
        known = zip(
            (Scalar.column(there, c) for c, _ in beside.keys), (f.scalar for f in of.fields), strict=True
        )
        days = Restrict(days, of, tuple(known))
    same = tuple(
        Scalar.parse(f"{Scalar.column(own, n).sql} <=> {Scalar.column(there, column).sql}")
        for n, (column, _) in zip(names, beside.keys, strict=True)
    )
    from_, to = Scalar.column(own, "block"), Scalar.column(there, beside.block)
    comparison, function = ("<", "MAX") if where == "earlier" else (">", "MIN")
    pairs = Join((each, days), (*same, Scalar.parse(f"{to.sql} {comparison} {from_.sql}")))
    kept = tuple(Item(n, Scalar.column(own, n), f.type) for n, f in zip(names, keys, strict=True))
    extreme = Scalar.parse(f"{function}({to.sql})")
    call = AggregateCall(_NEAREST, function.lower(), None, None, BIGINT, extreme)
    nearest = Aggregate(pairs, found, (*kept, Item("from_block", from_, BIGINT)), (call,))
    next_ = Scalar.column(found, _NEAREST)
    values = (*(Scalar.column(found, n) for n in names), next_, day_of(next_))
    items = (Item(f.name, v, f.type) for f, v in zip(blocks.fields, values, strict=True))
    return Map(nearest, alias, tuple(items))
