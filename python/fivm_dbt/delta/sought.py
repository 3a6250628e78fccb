"""What the rows of a change look for in a large relation is found by their keys before it is joined.

``ΔL ⟕ R = ΔL ⟕ (R ⋉ ΔL)``, and likewise for ⋉ and ▷. A database hands the few rows on the right of such a join to all
tasks, but not those on the left: for a handful of changed rows all of R would be sorted, or hashed. The keys of a
change stand on the right of ``R ⋉ ΔL``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fivm_dbt.catalog import SparkType, TableStatistics
from fivm_dbt.delta.key_sets import equalities
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
        return _of_right(rows.left, rows.right, here, rows.keys)
    if isinstance(rows, OneSided):
        # Of a row without a partner nothing is equal to anything there.
        equal = () if rows.keeps_unmatched else _equal(rows.predicates)
        return _of_right(rows.left, rows.right, here, equal)
    factors, predicates = rows.joined()
    types = {f.id: f.type for factor in factors for f in factor.fields}
    for factor in factors if len(factors) > 1 else ():
        same = _told_by(_equal(predicates), types, {c: t for c, t in types.items() if c in factor.ids})
        known = {c: v if v.columns <= factor.ids else same.get(v.sql, v) for c, v in here.items()}
        found = _source(factor, known)
        if found is not None:
            return found
    return None


def _of_right(left: Node, right: Node, keys: Keys, equal: Iterable[tuple[Scalar, Scalar]]) -> _Source | None:
    """The source of keys of left rows in what they are equal to on the right, or else on the left."""
    same = _told_by(equal, {f.id: f.type for f in left.fields}, {f.id: f.type for f in right.fields})
    known = {column: same[value.sql] for column, value in keys.items() if value.sql in same}
    return _source(right, known) or _source(left, keys)


def _told_by(
    equal: Iterable[tuple[Scalar, Scalar]],
    here: Mapping[ColumnId, SparkType],
    there: Mapping[ColumnId, SparkType],
) -> dict[str, Scalar]:
    """By a column here one there that is equal to it and of its type: of '1' and '01' neither tells the other."""
    found = {}
    for pair in equal:
        for one, other in (pair, pair[::-1]):
            if one.is_column and other.is_column:
                types = here.get(*one.columns), there.get(*other.columns)
                if types[0] is not None and types[0] == types[1]:
                    found[one.sql] = other
    return found


def _equal(predicates: tuple[Scalar, ...]) -> Iterator[tuple[Scalar, Scalar]]:
    return ((Scalar.column(*one), Scalar.column(*other)) for one, other in equalities(predicates))


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
