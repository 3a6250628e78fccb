"""A change can reach rows that are near it in time: these blocks of their key (:mod:`fivm_dbt.ir.near`)."""

from __future__ import annotations

from fivm_dbt.catalog.types import DATE, INT
from fivm_dbt.delta.blocks import around, behind_day, blocks_within, in_blocks, keys_of, renamed
from fivm_dbt.delta.covered import over_covered
from fivm_dbt.delta.neighbours import with_neighbours
from fivm_dbt.delta.running import running_from, with_later_blocks
from fivm_dbt.delta.term import Term, at_side
from fivm_dbt.ir.instants import utc_day
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Days, Near
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Explode, Map, UnionAll
from fivm_dbt.ir.one_sided import Restrict
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


def over_nearby(node: Window, near: Near, changed: tuple[Term, ...], side: Side) -> Window:
    """``node`` on one side, over no rows but those from which affected results are computed."""
    nodes, alias = tuple(t.node for t in changed), f"{node.alias}_near"
    keys = node.partition[:-2]
    if near.covered is not None:
        affected = affected_blocks(node, changed, f"{node.alias}_changed")
        return over_covered(node, near, near.covered, affected, keys_of(node, nodes), side)
    if near.beside is None:
        needed = blocks_within(nodes, keys, near, near.needed, alias)
    else:
        beside = near.beside
        blocks = _affected(node, near, nodes, f"{alias}_changed")
        earlier, later = beside.earlier, beside.later
        of = keys_of(node, nodes)
        needed = with_neighbours(blocks, of, beside, side, alias, earlier=earlier, later=later)
        if near.needed != (0, 0):
            reached = around(blocks, near, range(near.needed[0], near.needed[1] + 1), alias)
            needed = UnionAll((renamed(needed, alias), reached), alias)
    return node.with_inputs((in_blocks(at_side(node.input, side), keys, near, needed),))


def rows_of_windows(node: Local, near: Near, changed: tuple[Term, ...], side: Side) -> Node:
    """The rows on one side from which affected results are computed, with the sliding windows that they lie in."""
    nodes, alias = tuple(t.node for t in changed), f"{node.alias}_near"
    if not isinstance(node.input, TimeWindows):
        needed = blocks_within(nodes, node.key, near, near.needed, alias)
        return in_blocks(at_side(node.input, side), node.key, near, needed)
    windows = node.input
    keys = tuple(k for k in node.key if windows.alias not in k.value.tables)
    # In which windows a row lies makes no difference here.
    plain = tuple(n.inputs[0] if isinstance(n, TimeWindows) else n for n in nodes)
    needed = blocks_within(plain, keys, near, near.needed, alias)
    return windows.with_inputs((in_blocks(at_side(windows.input, side), keys, near, needed),))


def rows_of_blocks(node: Local, near: Near, keys: Node, side: Side) -> Restrict | None:
    """The rows on one side of an aggregate by blocks, of which ``keys`` are affected; None of other ones."""
    values = [k.value for k in node.key]
    if near.block not in values or near.day not in values:
        return None
    pairs = tuple((v, f.scalar) for v, f in zip(values, keys.fields, strict=True))
    day = keys.fields[values.index(near.day)].scalar
    return Restrict(at_side(node.input, side), keys, pairs, behind_day(near, day))


def running_rows(node: Window, changed: tuple[Term, ...], side: Side) -> Map:
    """Running functions of all rows from the first changed block of their key on."""
    near = node.near
    assert near is not None
    nodes, alias = tuple(t.node for t in changed), f"{node.alias}_near"
    keys, of = node.partition[:-2], keys_of(node, nodes)
    affected = _affected(node, near, nodes, alias)
    rows = in_blocks(at_side(node.input, side), keys, near, affected)
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
    own, of = blocks_within(rows, keys, near, (0, 0), f"{alias}_own"), keys_of(node, rows)
    if near.running is not None:
        return with_later_blocks(own, of, near.running, alias)
    assert beside is not None
    # A row is looked at by the next one where that looks back.
    found = with_neighbours(own, of, beside, Side.NEW, alias, earlier=beside.later, later=beside.earlier)
    if near.changed == (0, 0):
        return found
    reached = blocks_within(rows, keys, near, near.changed, f"{alias}_reached")
    return UnionAll((renamed(found, alias), renamed(reached, alias)), alias)
