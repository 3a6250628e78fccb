"""Running window functions are computed from the first changed block of a key on; parts tell their values before.

With K the key, D the blocks that are kept with a part of each function over their rows, and b(K) the first changed one:

``affected = {(K, b′) ∈ D : b′ ≥ b(K)} ∪ blocks(ΔR)``
``W_K(R) ⋉ affected = W_K(R ⋉ affected) ⊕ ⊕{part(K, c) ∈ D : c < b(K)}``

where ⊕ adds counts and sums, and takes the least or the greatest of extremes; NULL is what it has of no value. Without
a key all rows are one sequence.
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.instants import day_of
from fivm_dbt.ir.near import Near, Part, Running
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import OuterJoin, Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window

_FIRST = "first_block"
_ALL_ROWS = Item("all_rows", Scalar.number(1), INT)


def with_later_blocks(blocks: Node, of: Distinct | None, running: Running, alias: str) -> UnionAll:
    """``blocks``, which has a key, a block and its day, and all blocks that come behind the first of a key."""
    firsts = _firsts(blocks, f"{alias}_first")
    there = f"{alias}_behind"
    days = _days(of, running, there, Side.NEW)
    pairs = Join((firsts, days), (*_same(firsts, running, there), _compared(firsts, running, there, ">=")))
    *keys, _, _ = blocks.fields
    block = Scalar.column(there, running.block)
    values = (*(Scalar.column(firsts.alias, k.name) for k in keys), block, day_of(block))
    behind = tuple(Item(f.name, v, f.type) for f, v in zip(blocks.fields, values, strict=True))
    every = tuple(Item(f.name, f.scalar, f.type) for f in blocks.fields)
    return UnionAll((Map(blocks, alias, every), Map(pairs, alias, behind)), alias)


def running_from(node: Window, rows: Node, blocks: Node, of: Distinct | None, side: Side) -> Map:
    """``node`` over rows from the first block of their key on, each with what the functions are over those before."""
    near, alias = node.near, f"{node.alias}_before"
    assert isinstance(near, Near) and near.running is not None
    running = near.running
    firsts = _firsts(blocks, f"{alias}_first")
    there = f"{alias}_parts"
    join = Join(
        (firsts, _days(of, running, there, side)),
        (*_same(firsts, running, there), _compared(firsts, running, there, "<")),
    )
    calls = tuple(
        AggregateCall.as_written(p.column, p.how, _together(p, there), p.type) for p in running.parts
    )
    keys = tuple(Item(k.name, Scalar.column(firsts.alias, k.name), k.type) for k in firsts.keys)
    before = Aggregate(join, alias, keys, calls)
    partition = node.partition[:-2]
    after = replace(node, input=rows, alias=f"{node.alias}_from", partition=partition, near=None)
    own = {i.value: Scalar.column(after.alias, i.name) for i in node.items}
    values = tuple(own[k.value] for k in partition) or (_ALL_ROWS.value,)
    same = tuple(
        Scalar.parse(f"{value.sql} <=> {Scalar.column(alias, k.name).sql}")
        for value, k in zip(values, keys, strict=True)
    )
    parts = {p.of: p for p in running.parts}
    items = []
    for item in node.items:
        part, value = parts.get(item.name), own[item.value]
        items.append(replace(item, value=value if part is None else _gone_on(part, value, alias, item.type)))
    return Map(OuterJoin(after, before, same), node.alias, tuple(items))


def _firsts(blocks: Node, alias: str) -> Aggregate:
    """Of each key the changed block from which all others may be another.

    Without a key all rows have the same one, so that there is no first block where nothing has changed.
    """
    *keys, block, _ = blocks.fields
    named = tuple(Item(f"key_{i + 1}", f.scalar, f.type) for i, f in enumerate(keys)) or (_ALL_ROWS,)
    first = AggregateCall.as_written(_FIRST, "min", Scalar.parse(f"MIN({block.scalar.sql})"), BIGINT)
    return Aggregate(blocks, alias, named, (first,))


def _days(of: Distinct | None, running: Running, alias: str, side: Side) -> Node:
    columns = (*running.keys, (running.block, BIGINT), *_columns(running))
    days = Scan(running.relation, alias, columns, side)
    if of is None:
        return days
    known = zip(
        (Scalar.column(alias, c) for c, _ in running.keys), (f.scalar for f in of.fields), strict=True
    )
    return Restrict(days, of, tuple(known))


def _columns(running: Running) -> tuple[tuple[str, SparkType], ...]:
    return tuple((p.column, p.type) for p in running.parts)


def _same(firsts: Aggregate, running: Running, there: str) -> tuple[Scalar, ...]:
    if not running.keys:
        return ()
    pairs = zip(firsts.keys, running.keys, strict=True)
    return tuple(
        Scalar.parse(f"{Scalar.column(firsts.alias, k.name).sql} <=> {Scalar.column(there, c).sql}")
        for k, (c, _) in pairs
    )


def _compared(firsts: Aggregate, running: Running, there: str, sign: str) -> Scalar:
    """How a block lies to the first changed one."""
    block, first = Scalar.column(there, running.block), Scalar.column(firsts.alias, _FIRST)
    return Scalar.parse(f"{block.sql} {sign} {first.sql}")


def _together(part: Part, there: str) -> Scalar:
    """What a function is over all blocks of which these are the parts."""
    function = {"min": "MIN", "max": "MAX"}.get(part.how, "SUM")
    return Scalar.parse(f"CAST({function}({Scalar.column(there, part.column).sql}) AS {part.type.text})")


def _gone_on(part: Part, own: Scalar, before: str, type_: SparkType) -> Scalar:
    """A function over all rows: what it is over those from a block on, and over those before."""
    given = Scalar.column(before, part.column).sql
    text = {
        "count": f"{own.sql} + COALESCE({given}, 0)",
        "sum": f"COALESCE({own.sql} + {given}, {own.sql}, {given})",
        "min": f"LEAST({own.sql}, {given})",
        "max": f"GREATEST({own.sql}, {given})",
    }[part.how]
    return Scalar.parse(text).cast(type_.text)
