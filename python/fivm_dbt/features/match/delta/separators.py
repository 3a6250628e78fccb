"""The delta of a pattern between separators finds the matches of affected keys again, near the change.

With K the key, p the time part of a row, and D the number of separators by (K, p) before the refresh::

    safe     = {(K, p) ∈ D : D(K, p) > 0} − parts(ΔR)
    needed   = parts of K from the last safe one before a changed part to the first safe one behind it
    ΔM       = M(new R ⋉ needed) − M(old R ⋉ needed)

A safe part is the same before and after, and has a separator: no match has rows on both sides of that. What is found in
front of the separator of the first part, or behind that of the last, may begin or end too early, as not all rows are
read there; but rows and matches are the same on both sides of the difference. So are those across a gap between two
ranges of a key. (Of what ViewDF, section 4.3, calls the state of a key, nothing is open at a separator.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from fivm_dbt.catalog.types import BIGINT, DATE, INT
from fivm_dbt.delta.rule import delta_of, told_of
from fivm_dbt.delta.term import Derive, Term, at_side
from fivm_dbt.features.match.delta.columns import over, written
from fivm_dbt.features.match.ir.separated import Near, Separated, separators_by_part
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Filter, Map, UnionAll
from fivm_dbt.ir.one_sided import Apart, Restrict
from fivm_dbt.ir.part_columns import first_day, longest_from_first_day
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window

_PART, _HAS, _IS_CHANGED, _IS_SAFE, _SEGMENT, _IS_MET, _ENDS, _BEGINS = (
    "time_part", "has_separator", "is_changed", "is_safe", "segment", "is_met", "ends_met", "begins_on",
)  # fmt: skip


@delta_of(Separated)
def delta_between_separators(node: Separated, delta: Derive) -> tuple[Term, ...]:
    """``M(new R ⋉ needed) − M(old R ⋉ needed)``."""
    match = node.match
    changed = delta(match.input)
    if not changed:
        return ()
    needed = _needed(node, tuple(t.node for t in changed))
    values = (*(k.value for k in match.partition), node.part)
    pairs = tuple((v, f.scalar) for v, f in zip(values, needed.fields, strict=False))
    apart = None
    if node.near is not None:
        apart = Apart(node.near.time, needed.fields[-1].scalar, longest_from_first_day(node.near.length))
    return tuple(
        Term(
            match.with_inputs((Restrict(at_side(match.input, side), needed, pairs, apart),)),
            Scalar.number(sign),
        )
        for side, sign in ((Side.NEW, 1), (Side.OLD, -1))
    )


@told_of(Separated)
def told_of_separated(node: Separated, is_own: bool) -> str:
    return "affected keys, from the last rows before the change that no match has to the first ones behind it"


def _needed(node: Separated, changed: tuple[Node, ...]) -> Distinct:
    """The parts of affected keys whose rows are read: ``(K, p)``, each once, maybe with their first days."""
    alias, partition = f"{node.alias}_parts", node.match.partition
    keys = tuple(f"key_{n}" for n in range(1, len(partition) + 1))

    def own(values: tuple[Scalar, ...]) -> tuple[Item, ...]:
        return tuple(Item(n, v, i.type) for n, v, i in zip(keys, values, partition, strict=True))

    def part(has: Scalar, part: Scalar, *, is_changed: bool) -> tuple[Item, ...]:
        flag = Scalar.number(int(is_changed))
        return Item(_PART, part, BIGINT), Item(_HAS, has, INT), Item(_IS_CHANGED, flag, INT)

    here = own(tuple(i.value for i in partition))
    moved = [Map(row, alias, (*here, *part(Scalar.number(0), node.part, is_changed=True))) for row in changed]
    of = [Map(row, f"{alias}_keys", here) for row in changed]
    sequences = Distinct(of[0] if len(of) == 1 else UnionAll(tuple(of), f"{alias}_keys")) if keys else None
    counts = _counts(node, sequences, f"{alias}_before")
    *stored, period, separators = (f.scalar for f in counts.fields)
    has = over("CASE WHEN a.n > 0 THEN 1 ELSE 0 END", n=separators)
    known = Map(counts, alias, (*own(tuple(stored)), *part(has, period, is_changed=False)))
    return _met(UnionAll((known, *moved), alias), alias, keys, node.near)


def _counts(node: Separated, sequences: Distinct | None, alias: str) -> Node:
    """The number of separators of some keys in each part before the refresh: as it is kept, or of the old rows."""

    def restricted(rows: Node, values: Sequence[Scalar]) -> Node:
        if sequences is None:
            return rows
        return Restrict(
            rows, sequences, tuple(zip(values, (f.scalar for f in sequences.fields), strict=True))
        )

    if node.stored is not None:
        scan = Scan(node.stored.relation, alias, node.stored.columns, Side.OLD)
        return restricted(scan, [f.scalar for f in scan.fields[:-2]])
    numbers = count(1)
    counts = separators_by_part(node.match, node.part, lambda: f"{alias}_{next(numbers)}")
    old = at_side(counts.input, Side.OLD)
    return counts.with_inputs((restricted(old, [k.value for k in counts.keys[:-1]]),))


def _met(parts: UnionAll, alias: str, keys: tuple[str, ...], near: Near | None) -> Distinct:
    """Of the parts of keys those from the last safe one before a changed one to the first safe one behind it.

    A segment begins with a safe part and has all others up to the next. What is needed are the parts of segments with a
    change, and the safe part that begins the next segment.
    """
    known = {name: Scalar.column(alias, name) for name in (_HAS, _IS_CHANGED)}
    types = {f.name: f.type for f in parts.fields}
    by = tuple(Item(n, Scalar.column(alias, n), types[n]) for n in (*keys, _PART))
    calls = (
        written(_IS_CHANGED, over(f"MAX(a.{_IS_CHANGED})", **known), INT),
        written(
            _IS_SAFE, over(f"CASE WHEN MAX(a.{_IS_CHANGED}) = 0 THEN MAX(a.{_HAS}) ELSE 0 END", **known), INT
        ),
    )
    grouped: Node = Aggregate(parts, f"{alias}_each", by, calls)
    added = (
        (_SEGMENT, f"SUM({{{_IS_SAFE}}}) OVER ({{of}} ORDER BY {{{_PART}}})", BIGINT),
        (_IS_MET, f"MAX({{{_IS_CHANGED}}}) OVER ({{of_segment}})", INT),
        (_ENDS, f"LAG({{{_IS_MET}}}) OVER ({{of}} ORDER BY {{{_PART}}})", INT),
    )
    for number, (name, text, type_) in enumerate(added, start=1):
        grouped = _with_window(grouped, f"{alias}_{number}", keys, Item(name, Scalar.number(0), type_), text)
    table = grouped.fields[0].table
    met, ends, safe = (Scalar.column(table, n).sql for n in (_IS_MET, _ENDS, _IS_SAFE))
    is_needed = Scalar.parse(f"{met} = 1 OR ({safe} = 1 AND {ends} = 1)")
    shown = tuple(Item(n, Scalar.column(table, n), types[n]) for n in (*keys, _PART))
    if near is not None:
        shown += (Item(_BEGINS, first_day(Scalar.column(table, _PART), near.length), DATE),)
    return Distinct(Map(Filter(grouped, (is_needed,)), f"{alias}_needed", shown))


def _with_window(node: Node, alias: str, keys: tuple[str, ...], item: Item, text: str) -> Window:
    """``node`` with one more column, a window function by key, or by key and segment."""
    columns = {f.name: f.scalar.sql for f in node.fields}

    def by(names: tuple[str, ...]) -> str:
        return f"PARTITION BY {', '.join(columns[n] for n in names)}" if names else ""

    of_segment = by((*keys, _SEGMENT)) if _SEGMENT in columns else ""
    value = Scalar.parse(text.format(**columns, of=by(keys), of_segment=of_segment))
    partition = tuple(Item(f.name, f.scalar, f.type) for f in node.fields if f.name in keys)
    every = tuple(Item(f.name, f.scalar, f.type) for f in node.fields)
    return Window(node, alias, partition, (*every, Item(item.name, value, item.type)))
