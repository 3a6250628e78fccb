"""A set of blocks has neighbours: the nearest blocks of time with rows of a key, before and after."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.instants import day_of
from fivm_dbt.ir.near import Beside
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Filter, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window

_NEAREST, _BETWEEN = "nearest", "rows_between"


def with_neighbours(
    blocks: Node, of: Distinct | None, beside: Beside, side: Side, alias: str, *, earlier: int, later: int
) -> UnionAll:
    """``blocks``, which has a key, a block and its day, and of each the nearest ones that have so many earlier rows,
    and so many later ones.

    ``next₁(B) = {(K, min{b′ : (K, b′) ∈ D, b′ > b}) : (K, b) ∈ B}``
    ``nextₙ(B) = {(K, b′) : (K, b) ∈ B, (K, b′) ∈ D, b′ > b, Σ{rows of (K, c) ∈ D : b < c < b′} < n}``

    with D the blocks that ``side`` has, of which no keys but ``of`` are looked up.
    """
    every = tuple(Item(f.name, f.scalar, f.type) for f in blocks.fields)
    branches = [Map(blocks, alias, every)]
    for where, many in (("earlier", earlier), ("later", later)):
        if many:
            branches.append(
                _nearest(blocks, of, beside=beside, side=side, alias=alias, where=where, many=many)
            )
    return UnionAll(tuple(branches), alias)


def _nearest(
    blocks: Node, of: Distinct | None, beside: Beside, side: Side, alias: str, where: str, many: int
) -> Map:
    own, there, found = (f"{alias}_{where}_{name}" for name in ("of", "there", "found"))
    *keys, block, _ = blocks.fields
    names = tuple(f"key_{i + 1}" for i in range(len(keys)))
    named = tuple(Item(n, f.scalar, f.type) for n, f in zip(names, keys, strict=True))
    each = Aggregate(blocks, own, (*named, Item("block", block.scalar, BIGINT)), ())
    counted = () if many == 1 or beside.rows is None else ((beside.rows, BIGINT),)
    columns = (*beside.keys, (beside.block, BIGINT), *counted)
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
    kept = (*kept, Item("from_block", from_, BIGINT))
    nearest: Node
    if counted:
        rows = Scalar.column(there, counted[0][0])
        between = _rows_between(rows, [k.value for k in kept], to, is_down=where == "earlier")
        items = (*kept, Item(_NEAREST, to, BIGINT), Item(_BETWEEN, between, BIGINT))
        all_ = Window(pairs, found, kept, items)
        nearest = Filter(all_, (Scalar.parse(f"COALESCE({Scalar.column(found, _BETWEEN).sql}, 0) < {many}"),))
    else:
        extreme = Scalar.parse(f"{function}({to.sql})")
        call = AggregateCall.as_written(_NEAREST, function.lower(), extreme, BIGINT)
        nearest = Aggregate(pairs, found, kept, (call,))
    next_ = Scalar.column(found, _NEAREST)
    values = (*(Scalar.column(found, n) for n in names), next_, day_of(next_))
    shown = (Item(f.name, v, f.type) for f, v in zip(blocks.fields, values, strict=True))
    return Map(nearest, alias, tuple(shown))


def _rows_between(rows: Scalar, by: list[Scalar], block: Scalar, *, is_down: bool) -> Scalar:
    """How many rows lie in blocks that are nearer than ``block``; NULL of the nearest."""
    order = f"{block.sql} DESC" if is_down else block.sql
    over = f"PARTITION BY {', '.join(b.sql for b in by)} ORDER BY {order}"
    return Scalar.parse(f"SUM({rows.sql}) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)")
