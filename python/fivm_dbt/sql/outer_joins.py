"""LEFT, RIGHT and FULL joins become nodes: LEFT joins, antijoins and UNION ALL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Map, UnionAll
from fivm_dbt.ir.one_sided import OuterJoin, SemiJoin
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import ColumnId, Scalar, cast_ast
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.part import Part

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


@dataclass(frozen=True)
class Matching:
    """A join's condition, the columns of ``*`` over it, and the pairs of columns that USING or NATURAL made one."""

    predicates: tuple[Scalar, ...]
    outputs: tuple[tuple[str, Field], ...]
    pairs: tuple[tuple[Field, Field], ...] = ()


def outer_join(lowering: Lowering, left: Part, right: Part, matching: Matching, kind: str) -> Part:
    """A ``left``, ``right`` or ``full`` join of two parts of a FROM clause."""
    both = Part(left.sources + right.sources, matching.outputs, (left.node, right.node))
    if kind == "full":
        return _full(lowering, left, right, matching)
    kept, padded = (left, right) if kind == "left" else (right, left)
    if kind == "right":
        # The merged columns of USING are those of the side whose rows are all there.
        ours = {mine.id: theirs for mine, theirs in matching.pairs}
        both = Part(both.sources, tuple((n, ours.get(f.id, f)) for n, f in both.outputs), both.factors)
    item, meaning = _one_item(lowering, padded)
    predicates = tuple(_put(p, meaning) for p in matching.predicates)
    return both.at(OuterJoin(kept.node, item, predicates), meaning)


def as_one_item(lowering: Lowering, part: Part) -> Part:
    """The part as an item that can stand behind LEFT JOIN: all its fields under one alias."""
    item, meaning = _one_item(lowering, part)
    return part.at(item, meaning)


def behind_generators(lowering: Lowering, part: Part) -> Part:
    """The part as one item where generators make its rows: what is joined to it may name what they make.

    In SQL a LATERAL VIEW stands behind all joins, and only subqueries stand before it.
    """
    return as_one_item(lowering, part) if _makes_rows(part.node) else part


def _makes_rows(node: Node) -> bool:
    """Whether a generator would stand in the same FROM clause as ``node``."""
    if node.makes_rows:
        return True
    return not node.is_item and any(_makes_rows(child) for child in node.inputs)


def _one_item(lowering: Lowering, part: Part) -> tuple[Node, dict[ColumnId, Field]]:
    node = part.node
    if node.is_item:
        return node, {}
    alias = lowering.alias("joined")
    items, meaning = gathered(node.fields, alias)
    return Map(node, alias, items), meaning


def gathered(fields: tuple[Field, ...], alias: str) -> tuple[tuple[Item, ...], dict[ColumnId, Field]]:
    """Fields of several relations as columns of one, and which became which."""
    taken: set[str] = set()
    items: list[Item] = []
    meaning: dict[ColumnId, Field] = {}
    for field in fields:
        name = unique_name(field.name, taken)
        taken.add(name.lower())
        items.append(Item(name, field.scalar, field.type))
        meaning[field.id] = Field(alias, name, field.type)
    return tuple(items), meaning


def _put(scalar: Scalar, meaning: dict[ColumnId, Field]) -> Scalar:
    def replacement(column: ColumnId) -> Scalar | None:
        field = meaning.get(column)
        return field.scalar if field is not None else None

    return scalar.substitute(replacement)


def _full(lowering: Lowering, left: Part, right: Part, matching: Matching) -> Part:
    """``L FULL R = (L LEFT R) ⊎ (NULLs × (R ANTI L))``, each part linear or local by itself."""
    (ours, ours_meaning), (theirs, theirs_meaning) = _one_item(lowering, left), _one_item(lowering, right)
    meaning = {**ours_meaning, **theirs_meaning}
    predicates = tuple(_put(p, meaning) for p in matching.predicates)
    alias = lowering.alias("full_join")
    items, final = gathered(ours.fields + theirs.fields, alias)
    merged = _merged(lowering, matching, meaning, {i.name for i in items})
    matched = Map(
        OuterJoin(ours, theirs, predicates), lowering.alias("left_rows"), items + tuple(merged.values())
    )
    unmatched = _unmatched(lowering, ours, theirs, predicates, matched)
    node = UnionAll((matched, unmatched), alias)
    fields = {item.name: Field(alias, item.name, item.type) for item in matched.items}
    outputs = tuple((n, fields[merged[f.id].name] if f.id in merged else f) for n, f in matching.outputs)
    everything = {old: final[new.id] for old, new in meaning.items()} | final
    joined = Part(left.sources + right.sources, outputs, (node,))
    return joined.at(node, everything)


def _merged(
    lowering: Lowering, matching: Matching, meaning: dict[ColumnId, Field], taken: set[str]
) -> dict[ColumnId, Item]:
    found: dict[ColumnId, Item] = {}
    for mine, theirs in matching.pairs:
        one, other = (meaning.get(f.id, f).scalar for f in (mine, theirs))
        type_ = lowering.typer.common([mine.type, theirs.type]) or mine.type
        value = Scalar(exp.Coalesce(this=one.ast(), expressions=[other.ast()]))
        name = unique_name(mine.name, taken)
        taken.add(name.lower())
        found[mine.id] = Item(name, value, type_)
    return found


def _unmatched(
    lowering: Lowering, ours: Node, theirs: Node, predicates: tuple[Scalar, ...], matched: Map
) -> Map:
    """The right rows that no left row matches, with NULLs for the left side."""
    left, left_names = renamed(ours, lowering.alias)
    right, right_names = renamed(theirs, lowering.alias)
    names = {**left_names, **right_names}
    rest = SemiJoin(right, left, tuple(moved(p, names) for p in predicates), anti=True)
    gone = {f.id for f in ours.fields}

    def value(item: Item) -> Scalar:
        def replacement(column: ColumnId) -> Scalar | None:
            if column in gone:
                type_ = next(f.type for f in ours.fields if f.id == column)
                return Scalar(cast_ast(exp.Null(), type_))
            table, name = column
            return Scalar.column(names[table], name)

        return item.value.substitute(replacement)

    items = tuple(Item(i.name, value(i), i.type) for i in matched.items)
    return Map(rest, lowering.alias("right_rows"), items)
