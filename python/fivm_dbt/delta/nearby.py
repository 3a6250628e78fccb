"""A change can reach rows that are near it in time: these blocks of their key (:mod:`fivm_dbt.ir.near`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fivm_dbt.catalog.types import BIGINT, DATE, INT
from fivm_dbt.delta.neighbours import with_neighbours
from fivm_dbt.delta.running import running_from, with_later_blocks
from fivm_dbt.delta.term import Term, at_side
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.instants import DAY, day_of, utc_day
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Covered, Days, Extreme, Near, Range
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Explode, Filter, Map, UnionAll
from fivm_dbt.ir.one_sided import Apart, Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.rename import rebuilt
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.time_windows import TimeWindows
from fivm_dbt.ir.window import Window

_STEP, _IS_OTHER = "step", "is_other"


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
        return over_covered(node, near, near.covered, nodes, side)
    if near.beside is None:
        needed = blocks_within(nodes, keys, near, near.needed, alias)
    else:
        beside = near.beside
        affected = _affected(node, near, nodes, f"{alias}_changed")
        earlier, later = beside.earlier, beside.later
        of = _keys_of(node, nodes)
        needed = with_neighbours(affected, of, beside, side, alias, earlier=earlier, later=later)
        if near.needed != (0, 0):
            around = _around(affected, near, range(near.needed[0], near.needed[1] + 1), alias)
            needed = UnionAll((_renamed(needed, alias), around), alias)
    return node.with_inputs((_in_blocks(at_side(node.input, side), keys, near, needed),))


def over_covered(node: Window, near: Near, covered: Covered, changed: tuple[Node, ...], side: Side) -> Window:
    """``node`` on one side over the rows of some blocks, and of other blocks over a row each with their extremes.

    ``affected = blocks(ΔR) ∩ D``, of a key K with the blocks D
    ``rows     = {(K, b + i) : (K, b) ∈ affected, i no step of covered} ∪ neighbours(affected)``
    ``extremes = {(K, b + i) : (K, b) ∈ affected, i a step of covered} − rows``

    A block of ``extremes`` lies in all frames of an affected row as a whole, or in none: what MIN and MAX are over its
    rows they are over their extremes, at the time of one of them. The neighbours of a row are among ``rows``.
    """
    alias, keys = f"{node.alias}_near", node.partition[:-2]
    affected = _there(node, near, covered, changed, side)
    # A row reaches as far back as ahead of it rows are changed by it.
    own = tuple(i for i in range(-near.changed[1], 1 - near.changed[0]) if i not in covered.steps)
    needed: Node = _around(affected, near, own, f"{alias}_rows")
    if near.beside is not None:
        earlier, later = near.beside.earlier, near.beside.later
        of = _keys_of(node, changed)
        beside = with_neighbours(
            affected, of, near.beside, side, f"{alias}_beside", earlier=earlier, later=later
        )
        needed = UnionAll((needed, _renamed(beside, f"{alias}_also")), f"{alias}_needed")
    rows = _in_blocks(at_side(node.input, side), keys, near, needed)
    others = _less(_around(affected, near, covered.steps, f"{alias}_covered"), needed, f"{alias}_others")
    return _over_both(node, rows, covered, others, side)


def _there(node: Window, near: Near, covered: Covered, changed: tuple[Node, ...], side: Side) -> Map:
    """The affected blocks that have rows on one side."""
    affected, alias = Distinct(_affected(node, near, changed, f"{node.alias}_changed")), f"{node.alias}_there"
    scan = _kept_blocks(covered, f"{alias}_kept", side)
    values = [f.scalar for f in scan.fields[: len(affected.fields)]]
    pairs = tuple((v, f.scalar) for v, f in zip(values, affected.fields, strict=True))
    items = tuple(Item(f.name, v, f.type) for v, f in zip(values, affected.fields, strict=True))
    return Map(Restrict(scan, affected, pairs), alias, items)


def _kept_blocks(covered: Covered, alias: str, side: Side) -> Scan:
    extremes = ((e.column, e.type) for e in (covered.time, *covered.parts))
    columns = (*covered.keys, (covered.block, BIGINT), (covered.day, DATE), *extremes)
    return Scan(covered.relation, alias, columns, side)


def _less(blocks: Node, others: Node, alias: str) -> Distinct:
    """Those of ``blocks`` that are none of ``others``."""
    branches = tuple(
        Map(
            b,
            f"{alias}_both",
            (*(Item(f.name, f.scalar, f.type) for f in b.fields), Item(_IS_OTHER, Scalar.number(n), INT)),
        )
        for n, b in enumerate((blocks, others))
    )
    both = UnionAll(branches, f"{alias}_both")
    keys = tuple(Item(f.name, f.scalar, f.type) for f in both.fields[:-1])
    is_other = Scalar.parse(f"MAX({both.fields[-1].scalar.sql})")
    call = AggregateCall(_IS_OTHER, "max", argument=None, argument_type=None, type=INT, written=is_other)
    each = Aggregate(both, f"{alias}_each", keys, (call,))
    only = Filter(each, (Scalar.parse(f"{Scalar.column(each.alias, _IS_OTHER).sql} = 0"),))
    return Distinct(Map(only, alias, tuple(Item(f.name, f.scalar, f.type) for f in each.fields[:-1])))


def _over_both(node: Window, rows: Restrict, covered: Covered, others: Distinct, side: Side) -> Window:
    """``node`` over rows, and a row for each of the ``others``, or several: of a column each has one value."""
    alias = f"{node.alias}_both"
    names = {f.id: f"column_{n}" for n, f in enumerate(rows.fields, start=1)}
    branches: list[Node] = [Map(rows, alias, tuple(Item(names[f.id], f.scalar, f.type) for f in rows.fields))]
    for number, parts in enumerate(_by_column(covered.parts), start=1):
        kept = _kept_blocks(covered, f"{alias}_{number}", side)
        own = [f.scalar for f in kept.fields[: len(others.fields)]]
        pairs = tuple((v, f.scalar) for v, f in zip(own, others.fields, strict=True))
        known = {
            **{k.value: v for k, v in zip(node.partition, own, strict=True)},
            **{e.argument: Scalar.column(kept.alias, e.column) for e in (*parts, covered.time)},
        }
        items = tuple(
            Item(names[f.id], known.get(f.scalar) or Scalar.parse(f"CAST(NULL AS {f.type})"), f.type)
            for f in rows.fields
        )
        branches.append(Map(Restrict(kept, others, pairs), alias, items))
    meaning = {id_: Scalar.column(alias, name) for id_, name in names.items()}
    both = UnionAll(tuple(branches), alias)
    return rebuilt(node, (both,), lambda value: value.substitute(meaning.get))


def _by_column(parts: tuple[Extreme, ...]) -> list[list[Extreme]]:
    """Extremes, those of one column apart from each other."""
    found: list[list[Extreme]] = []
    for part in parts:
        place = next((f for f in found if all(e.argument != part.argument for e in f)), None)
        if place is None:
            found.append([part])
        else:
            place.append(part)
    return found


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
    return Restrict(rows, Distinct(needed), pairs, _apart(near, needed.fields[-1].scalar))


def rows_of_blocks(node: Local, near: Near, keys: Node, side: Side) -> Restrict | None:
    """The rows on one side of an aggregate by blocks, of which ``keys`` are affected; None of other ones."""
    values = [k.value for k in node.key]
    if near.block not in values or near.day not in values:
        return None
    pairs = tuple((v, f.scalar) for v, f in zip(values, keys.fields, strict=True))
    day = keys.fields[values.index(near.day)].scalar
    return Restrict(at_side(node.input, side), keys, pairs, _apart(near, day))


def _apart(near: Near, day: Scalar) -> Apart | None:
    """How far the time of a row is behind the day of its block, where it is not that day by which rows are placed."""
    if near.day.is_column or len(near.day.columns) != 1:
        return None
    # A block of some hours begins later than its day.
    behind = 0 if near.length % DAY == 0 else DAY
    return Apart(Scalar.column(*next(iter(near.day.columns))), day, near.length + behind - 1)


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


def _around(blocks: Node, near: Near, steps: Sequence[int], alias: str) -> Map:
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
