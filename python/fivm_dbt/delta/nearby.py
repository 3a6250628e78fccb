"""Rows that are near a change in time: the blocks of their key that it can reach (:mod:`fivm_dbt.ir.near`)."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT, DATE, INT
from fivm_dbt.delta.term import Term, at_side
from fivm_dbt.ir.instants import day_of
from fivm_dbt.ir.near import Near, Range
from fivm_dbt.ir.nodes import Aggregate, Distinct, Explode, Item, Map, Node, Restrict, Side, UnionAll, Window
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.time_windows import TimeWindows

_STEP = "step"


def blocks_within(
    changed: tuple[Node, ...], keys: tuple[Item, ...], near: Near, steps: Range, alias: str
) -> Distinct:
    """``{(K, b + i) : (K, b) ∈ ΔR, i ∈ steps}``: the blocks around those of changed rows, with their days."""
    made = f"{alias}_steps"
    generator = Scalar.parse(f"EXPLODE(SEQUENCE({steps[0]}, {steps[1]}))")
    branches = []
    for node in changed:
        rows: Node = node
        block = near.block
        if steps != (0, 0):
            rows = Explode(node, made, generator, ((_STEP, INT),))
            step = Scalar.column(made, _STEP)
            block = Scalar.parse(f"{near.block.sql} + {step.sql} * CAST({near.length} AS BIGINT)")
        values = (*(k.value for k in keys), block, day_of(block))
        types = (*(k.type for k in keys), BIGINT, DATE)
        items = (Item(f"key_{i + 1}", v, t) for i, (v, t) in enumerate(zip(values, types, strict=True)))
        branches.append(Map(rows, alias, tuple(items)))
    return Distinct(branches[0] if len(branches) == 1 else UnionAll(tuple(branches), alias))


def nearby_rows(node: Aggregate | Window, changed: tuple[Term, ...], side: Side) -> Node:
    """The input of ``node`` on one side, with no rows but those from which affected results are computed."""
    near = node.near
    assert near is not None
    rows, windows = node.input, None
    nodes = tuple(t.node for t in changed)
    keys = node.partition[:-2] if isinstance(node, Window) else node.keys
    if isinstance(rows, TimeWindows):
        keys = tuple(k for k in keys if rows.alias not in k.value.tables)
        rows, windows = rows.input, rows
        # In which windows a row lies makes no difference here.
        nodes = tuple(n.inputs[0] if isinstance(n, TimeWindows) else n for n in nodes)
    needed = blocks_within(nodes, keys, near, near.needed, f"{node.alias}_near")
    values = (*(k.value for k in keys), near.block, near.day)
    pairs = tuple((v, f.scalar) for v, f in zip(values, needed.fields, strict=True))
    restricted = Restrict(at_side(rows, side), needed, pairs)
    return windows.with_inputs((restricted,)) if windows is not None else restricted
