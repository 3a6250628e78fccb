"""A change can reach rows that are near it in time: these blocks of their key (:mod:`fivm_dbt.ir.near`)."""

from __future__ import annotations

from collections.abc import Callable

from fivm_dbt.catalog.types import BIGINT, DATE, INT
from fivm_dbt.delta.neighbours import with_neighbours
from fivm_dbt.delta.running import running_from, with_later_blocks
from fivm_dbt.delta.term import Term, at_side
from fivm_dbt.ir.instants import DAY, day_of, utc_day
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Days, Near, Range
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Explode, Map, UnionAll
from fivm_dbt.ir.one_sided import Apart, Restrict
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.time_windows import TimeWindows
from fivm_dbt.ir.window import Window

_STEP = "step"


def affected_blocks(node: Window, changed: tuple[Term, ...], alias: str) -> Distinct:
    """The blocks of which some result may be another one: ``(K, block, day)``, each once."""
    near = node.near
    assert near is not None
    rows = tuple(term.node for term in changed)
    return Distinct(_affected(node, near, rows, alias))


def nearby_rows(node: Window, near: Near, changed: tuple[Term, ...], side: Side) -> Restrict:
    """The input of ``node`` on one side, with no rows but those from which affected results are computed."""
    nodes, alias = tuple(t.node for t in changed), f"{node.alias}_near"
    keys = node.partition[:-2]
    if near.beside is None:
        needed = blocks_within(nodes, keys, near, near.needed, alias)
    else:
        beside = near.beside
        affected = _affected(node, near, nodes, f"{alias}_changed")
        earlier, later = beside.earlier, beside.later
        of = _keys_of(node, nodes)
        needed = with_neighbours(affected, of, beside, side, alias, earlier=earlier, later=later)
        if near.needed != (0, 0):
            around = _around(affected, near, near.needed, alias)
            needed = UnionAll((_renamed(needed, alias), around), alias)
    return _in_blocks(at_side(node.input, side), keys, near, needed)


def rows_of_windows(node: Local, near: Near, changed: tuple[Term, ...], side: Side) -> Node:
    """The rows on one side from which affected results are computed, with the sliding windows that they lie in."""
    nodes, alias = tuple(t.node for t in changed), f"{node.alias}_near"
    if not isinstance(node.input, TimeWindows):
        needed = blocks_within(nodes, node.key, near, near.needed, alias)
        return _in_blocks(at_side(node.input, side), node.key, near, needed)
    windows = node.input
    keys = tuple(k for k in node.key if windows.alias not in k.value.tables)
    # In which windows a row lies makes no difference here.
    plain = tuple(n.inputs[0] if isinstance(n, TimeWindows) else n for n in nodes)
    needed = blocks_within(plain, keys, near, near.needed, alias)
    return windows.with_inputs((_in_blocks(at_side(windows.input, side), keys, near, needed),))


def _in_blocks(rows: Node, keys: tuple[Item, ...], near: Near, needed: Node) -> Restrict:
    values = (*(k.value for k in keys), near.block, near.day)
    pairs = tuple((v, f.scalar) for v, f in zip(values, needed.fields, strict=True))
    apart = None
    if not near.day.is_column and len(near.day.columns) == 1:
        time = Scalar.column(*next(iter(near.day.columns)))
        # A block of some hours begins later than its day.
        behind = 0 if near.length % DAY == 0 else DAY
        apart = Apart(time, needed.fields[-1].scalar, near.length + behind - 1)
    return Restrict(rows, Distinct(needed), pairs, apart)


def running_rows(node: Window, changed: tuple[Term, ...], side: Side) -> Map:
    """Running functions of all rows from the first changed block of their key on."""
    near = node.near
    assert near is not None
    nodes, alias = tuple(t.node for t in changed), f"{node.alias}_near"
    keys, of = node.partition[:-2], _keys_of(node, nodes)
    assert of is not None
    affected = _affected(node, near, nodes, alias)
    rows = _in_blocks(at_side(node.input, side), keys, near, affected)
    own = blocks_within(nodes, keys, near, (0, 0), f"{alias}_own")
    return running_from(node, rows, own, of, side)


def rows_on_days(node: Local, near: Days, changed: tuple[Term, ...], side: Side) -> Restrict:
    """The rows of affected groups on one side, looked up by the days on which they lie."""
    alias, made = f"{node.alias}_days", f"{node.alias}_numbers"
    generator = Scalar.parse(f"EXPLODE(SEQUENCE({near.first.sql}, {near.last.sql}))")
    keys = tuple(Item(f"key_{i + 1}", k.value, k.type) for i, k in enumerate(node.key))
    items = (*keys, Item("day", utc_day(Scalar.column(made, _STEP)), DATE))
    branches = tuple(Map(Explode(t.node, made, generator, ((_STEP, INT),)), alias, items) for t in changed)
    needed = Distinct(branches[0] if len(branches) == 1 else UnionAll(branches, alias))
    values = (*(k.value for k in node.key), near.day)
    pairs = tuple((v, f.scalar) for v, f in zip(values, needed.fields, strict=True))
    return Restrict(at_side(node.input, side), needed, pairs)


def _affected(node: Window, near: Near, rows: tuple[Node, ...], alias: str) -> Node:
    keys = node.partition[:-2]
    beside = near.beside
    if beside is None and near.running is None:
        return blocks_within(rows, keys, near, near.changed, alias)
    own = blocks_within(rows, keys, near, (0, 0), f"{alias}_own")
    if near.running is not None:
        sequences = _keys_of(node, rows)
        assert sequences is not None
        return with_later_blocks(own, sequences, near.running, alias)
    assert beside is not None
    # A row is looked at by the next one where that looks back.
    of = _keys_of(node, rows)
    found = with_neighbours(own, of, beside, Side.NEW, alias, earlier=beside.later, later=beside.earlier)
    if near.changed == (0, 0):
        return found
    reached = blocks_within(rows, keys, near, near.changed, f"{alias}_reached")
    return UnionAll((_renamed(found, alias), _renamed(reached, alias)), alias)


def _keys_of(node: Window, rows: tuple[Node, ...]) -> Distinct | None:
    """The keys of changed rows, without their blocks; None where all rows are one sequence."""
    keys = node.partition[:-2]
    if not keys:
        return None
    items = tuple(Item(f"key_{i + 1}", k.value, k.type) for i, k in enumerate(keys))
    alias = f"{node.alias}_sequences"
    branches = tuple(Map(row, alias, items) for row in rows)
    return Distinct(branches[0] if len(branches) == 1 else UnionAll(branches, alias))


def _around(blocks: Node, near: Near, steps: Range, alias: str) -> Map:
    """The blocks around others, which have a key, a block and its day."""
    made = f"{alias}_around"
    *keys, block, _ = blocks.fields
    rows = Explode(blocks, made, _steps(steps), ((_STEP, INT),))
    there = _moved(block.scalar, near, made)
    items = tuple(Item(f.name, f.scalar, f.type) for f in keys)
    names = [f.name for f in blocks.fields[-2:]]
    added = zip(names, (there, day_of(there)), (BIGINT, DATE), strict=True)
    return Map(rows, alias, (*items, *(Item(*item) for item in added)))


def _renamed(blocks: Node, alias: str) -> Map:
    return Map(blocks, alias, tuple(Item(f.name, f.scalar, f.type) for f in blocks.fields))


def _steps(steps: Range) -> Scalar:
    return Scalar.parse(f"EXPLODE(SEQUENCE({steps[0]}, {steps[1]}))")


def _moved(block: Scalar, near: Near, made: str) -> Scalar:
    step = Scalar.column(made, _STEP)
    return Scalar.parse(f"{block.sql} + {step.sql} * CAST({near.length} AS BIGINT)")


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
