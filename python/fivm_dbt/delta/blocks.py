"""Blocks of time of a key: those around others, and the rows that lie in them (:mod:`fivm_dbt.ir.near`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fivm_dbt.catalog.types import BIGINT, DATE, INT
from fivm_dbt.ir.instants import DAY, day_of
from fivm_dbt.ir.near import Near, Range
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Distinct, Explode, Map, UnionAll
from fivm_dbt.ir.one_sided import Apart, Restrict
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window

_STEP = "step"


def blocks_within(
    changed: tuple[Node, ...],
    keys: tuple[Item, ...],
    near: Near,
    steps: Range,
    alias: str,
    day_of: Callable[[Scalar], Scalar] = day_of,
) -> Node:
    """``{(K, b + i) : (K, b) ∈ ΔR, i ∈ steps}``: the blocks around those of changed rows, with their days."""
    made = f"{alias}_steps"
    branches = []
    for node in changed:
        rows: Node = node
        block = near.block
        if steps != (0, 0):
            rows = Explode(node, made, _steps(steps), ((_STEP, INT),))
            block = _moved(near.block, near, made)
        values = (*(k.value for k in keys), block, day_of(block))
        types = (*(k.type for k in keys), BIGINT, DATE)
        items = (Item(f"key_{i + 1}", v, t) for i, (v, t) in enumerate(zip(values, types, strict=True)))
        branches.append(Map(rows, alias, tuple(items)))
    return branches[0] if len(branches) == 1 else UnionAll(tuple(branches), alias)


def around(blocks: Node, near: Near, steps: Sequence[int], alias: str) -> Map:
    """The blocks so many steps from others, which have a key, a block and its day."""
    made = f"{alias}_around"
    *keys, block, _ = blocks.fields
    generator = Scalar.parse(f"EXPLODE(ARRAY({', '.join(map(str, steps))}))")
    rows = Explode(blocks, made, generator, ((_STEP, INT),))
    there = _moved(block.scalar, near, made)
    items = tuple(Item(f.name, f.scalar, f.type) for f in keys)
    names = [f.name for f in blocks.fields[-2:]]
    added = zip(names, (there, day_of(there)), (BIGINT, DATE), strict=True)
    return Map(rows, alias, (*items, *(Item(*item) for item in added)))


def renamed(blocks: Node, alias: str) -> Map:
    """The same blocks, called otherwise."""
    return Map(blocks, alias, tuple(Item(f.name, f.scalar, f.type) for f in blocks.fields))


def keys_of(node: Window, rows: tuple[Node, ...]) -> Distinct | None:
    """The keys of changed rows, without their blocks; None where all rows are one sequence."""
    keys = node.partition[:-2]
    if not keys:
        return None
    items = tuple(Item(f"key_{i + 1}", k.value, k.type) for i, k in enumerate(keys))
    alias = f"{node.alias}_sequences"
    branches = tuple(Map(row, alias, items) for row in rows)
    return Distinct(branches[0] if len(branches) == 1 else UnionAll(branches, alias))


def in_blocks(rows: Node, keys: tuple[Item, ...], near: Near, needed: Node) -> Restrict:
    """The rows in the ``needed`` blocks of their keys."""
    values = (*(k.value for k in keys), near.block, near.day)
    pairs = tuple((v, f.scalar) for v, f in zip(values, needed.fields, strict=True))
    return Restrict(rows, Distinct(needed), pairs, behind_day(near, needed.fields[-1].scalar))


def behind_day(near: Near, day: Scalar) -> Apart | None:
    """How far the time of a row is behind the day of its block, where it is not that day by which rows are placed."""
    if near.day.is_column or len(near.day.columns) != 1:
        return None
    # A block of some hours begins later than its day.
    behind = 0 if near.length % DAY == 0 else DAY
    return Apart(Scalar.column(*next(iter(near.day.columns))), day, near.length + behind - 1)


def _steps(steps: Range) -> Scalar:
    return Scalar.parse(f"EXPLODE(SEQUENCE({steps[0]}, {steps[1]}))")


def _moved(block: Scalar, near: Near, made: str) -> Scalar:
    step = Scalar.column(made, _STEP)
    return Scalar.parse(f"{block.sql} + {step.sql} * CAST({near.length} AS BIGINT)")
