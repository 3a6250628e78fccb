"""What the rows of a change look for in a large relation is found by their keys before it is joined.

``ΔL ⟕ R = ΔL ⟕ (R ⋉ ΔL)``, and likewise for ⋉ and ▷. A database hands the few rows on the right of such a join to all
tasks, but not those on the left: for a handful of changed rows all of R would be sorted, or hashed. The keys of a
change stand on the right of ``R ⋉ ΔL``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.one_sided import OneSided, Restrict, SemiJoin
from fivm_dbt.ir.reads import reads
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import unique_name

SOUGHT_FROM = 100_000
"""Rows of a relation from which on it pays to look for keys first."""

Keys = Mapping[ColumnId, Scalar]


def sought(terms: tuple[Term, ...], measured: TableStatistics | None) -> tuple[Term, ...]:
    """``terms`` with the large right sides of outer and semi joins reduced to what the change looks for.

    As they are where nothing is ``measured``.
    """
    if measured is None:
        return terms
    reduced = _Sought(measured)
    return tuple(replace(term, node=reduced(term.node)) for term in terms)


@dataclass(frozen=True)
class _Sought:
    measured: TableStatistics

    def __call__(self, node: Node) -> Node:
        over = node.with_inputs(tuple(self(child) for child in node.inputs))
        if not isinstance(over, OneSided) or not self._is_large(over.right):
            return over
        pairs = dict(_pairs(over))
        source = _source(over.left, {left: Scalar.column(*left) for left in pairs.values()})
        aliases = {f.table for f in over.right.fields}
        if source is None or len(aliases) != 1:
            return over
        return replace(over, right=_reduced(over.right, aliases.pop(), pairs, source))

    def _is_large(self, right: Node) -> bool:
        """Whether it has all rows of a large input."""
        whole = (read.source for read in reads(right) if read.lookup is None and not read.is_near_changes)
        rows = (self.measured.rows_of(s.relation) or 0 for s in whole if s.side is not Side.DELTA)
        return max(rows, default=0) >= SOUGHT_FROM


@dataclass(frozen=True)
class _Source:
    """Rows of a change, and by column of the left side what it is equal to in them."""

    rows: Node
    keys: Keys


def _pairs(node: OneSided) -> Iterator[tuple[Scalar, ColumnId]]:
    """Each equality of two columns, with the one that is on the left."""
    for predicate in node.predicates:
        pair = predicate.equality
        for one, other in () if pair is None else (pair, pair[::-1]):
            if one in node.left.ids and other in node.right.ids:
                yield predicate, one


def _source(rows: Node, keys: Keys) -> _Source | None:
    """The rows of a change whose values all ``keys`` of these rows have, or some of them; None if there are none.

    By key of above it is known what it is in ``rows``.
    """
    here = {column: value for column, value in keys.items() if value.is_column and value.columns <= rows.ids}
    if not here:
        return None
    if all(scan.side is Side.DELTA for scan in scans(rows)):
        return _Source(rows, here)
    if rows.is_row_level:
        return _source(rows.inputs[0], {c: value.substitute(rows.shown_as) for c, value in here.items()})
    if isinstance(rows, Restrict):
        equal = {one.sql: other for one, other in rows.keys}
        return _of_side(rows.right, here, equal) or _source(rows.left, here)
    if isinstance(rows, OneSided):
        equal = {} if rows.keeps_unmatched else _equal(rows.predicates)
        return _of_side(rows.right, here, equal) or _source(rows.left, here)
    factors, predicates = rows.joined()
    if len(factors) < 2:
        return None
    found = (_of_side(factor, here, _equal(predicates)) for factor in factors)
    return next((source for source in found if source is not None), None)


def _of_side(side: Node, keys: Keys, equal: Mapping[str, Scalar]) -> _Source | None:
    """The source of keys in one side of a join, by themselves or by what they are equal to there."""
    known = {}
    for column, value in keys.items():
        for same in (value, equal.get(value.sql)):
            if same is not None and same.columns <= side.ids:
                known[column] = same
    return _source(side, known)


def _equal(predicates: tuple[Scalar, ...]) -> dict[str, Scalar]:
    """By column one that is equal to it."""
    found: dict[str, Scalar] = {}
    for predicate in predicates:
        if predicate.equality is not None:
            one, other = (Scalar.column(*column) for column in predicate.equality)
            found |= {one.sql: other, other.sql: one}
    return found


def _reduced(right: Node, alias: str, pairs: Mapping[Scalar, ColumnId], source: _Source) -> Map:
    """The rows on the right that have one of the keys."""
    types = {f.id: f.type for f in source.rows.fields}
    name = f"{alias}_sought"
    items: list[Item] = []
    named: dict[ColumnId, Scalar] = {}
    for column, value in source.keys.items():
        type_ = types[next(iter(value.columns))]
        items.append(Item(unique_name(column[1], {i.name.lower() for i in items}), value, type_))
        named[column] = Scalar.column(name, items[-1].name)
    predicates = tuple(p.substitute(named.get) for p, column in pairs.items() if column in named)
    found = SemiJoin(right, Map(source.rows, name, tuple(items)), predicates)
    return Map(found, alias, tuple(Item(f.name, f.scalar, f.type) for f in right.fields))
