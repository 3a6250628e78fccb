"""Blocks that lie in a frame as a whole are read by their extremes (block decomposition of MIN and MAX)."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT, DATE, INT
from fivm_dbt.delta.blocks import around, in_blocks, renamed
from fivm_dbt.delta.neighbours import with_neighbours
from fivm_dbt.delta.term import at_side
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.near import Covered, Extreme, Near
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Filter, Map, UnionAll
from fivm_dbt.ir.one_sided import Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.rename import rebuilt
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window

_IS_OTHER = "is_other"


def over_covered(
    node: Window, near: Near, covered: Covered, changed: Distinct, of: Distinct | None, side: Side
) -> Window:
    """``node`` on one side over the rows of some blocks, and of other blocks over a row each with their extremes.

    With the affected blocks ``changed``, of the sequences ``of`` which D are the blocks that have rows,

    ``affected = changed ∩ D``
    ``rows     = {(K, b + i) : (K, b) ∈ affected, i no step of covered} ∪ neighbours(affected)``
    ``extremes = {(K, b + i) : (K, b) ∈ affected, i a step of covered} − rows``

    A block of ``extremes`` lies in all frames of an affected row as a whole, or in none: what MIN and MAX are over its
    rows they are over their extremes, at the time of one of them. The neighbours of a row are among ``rows``.
    """
    alias, keys = f"{node.alias}_near", node.partition[:-2]
    affected = _there(node, covered, changed, side)
    # A row reaches as far back as ahead of it rows are changed by it.
    own = tuple(i for i in range(-near.changed[1], 1 - near.changed[0]) if i not in covered.steps)
    needed: Node = around(affected, near, own, f"{alias}_rows")
    if near.beside is not None:
        earlier, later = near.beside.earlier, near.beside.later
        beside = with_neighbours(
            affected, of, near.beside, side, f"{alias}_beside", earlier=earlier, later=later
        )
        needed = UnionAll((needed, renamed(beside, f"{alias}_also")), f"{alias}_needed")
    rows = in_blocks(at_side(node.input, side), keys, near, needed)
    others = _less(around(affected, near, covered.steps, f"{alias}_covered"), needed, f"{alias}_others")
    return _over_both(node, rows, covered, others, side)


def _there(node: Window, covered: Covered, affected: Distinct, side: Side) -> Map:
    """The affected blocks that have rows on one side."""
    alias = f"{node.alias}_there"
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
    call = AggregateCall.as_written(_IS_OTHER, "max", is_other, INT)
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
