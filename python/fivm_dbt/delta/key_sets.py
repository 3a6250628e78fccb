"""The keys that a change affects bound reads of inner views.

A delta joins rows of kept views with changed rows, or restricts them to affected keys. The state of a kept view is
partitioned by a period or by hash buckets of key columns, so once the values of those columns are known, the partitions
are, and a statement names them as literals: what it reads is bounded by what changed. The keys are computed once per
refresh, whatever number of terms look them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import OneSided, Restrict, SemiJoin
from fivm_dbt.ir.reads import Lookup, Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar


@dataclass(frozen=True)
class KeySet:
    """Keys that changes affect: ``node`` gives each once. Terms scan the staged rows under ``name``.

    One ``is_inlined`` that nothing scans and one look-up is bounded by: it is computed where its partitions are asked
    for, and never staged. One that ``may_be_empty`` though something changed, as it is what a relation has of a change,
    or a part of the keys, is looked at when it is staged: what it would restrict to nothing is not read. One that
    ``has_rows`` has those of a join, each as often as it is there (:mod:`fivm_dbt.delta.met_first`).
    """

    name: str
    node: Node
    is_inlined: bool = False
    is_looked_at: bool = False
    has_rows: bool = False

    @property
    def of_relation(self) -> SemiJoin | None:
        """The join by which these are keys of a change that a relation has, or has not; None for all keys of it."""
        rows = self.node.inputs[0]
        return rows.input if isinstance(rows, Map) and isinstance(rows.input, SemiJoin) else None

    @property
    def may_be_empty(self) -> bool:
        return self.is_looked_at or self.of_relation is not None


@dataclass(frozen=True)
class Placed:
    """What decides in which partition of its state a row of a kept view lies: state column → shown column, its type."""

    columns: tuple[tuple[str, str, SparkType], ...]


def bound_reads(
    terms: tuple[Term, ...], kept: Mapping[str, Placed], prefix: str
) -> tuple[tuple[Term, ...], tuple[KeySet, ...]]:
    """``terms`` with the affected keys as staged sets that bound the reads of the views ``kept``, and those sets.

    The rows are the same: those outside the partitions in which the keys lie would match none of them.
    """
    bounds = _Bounds(kept, prefix)
    bounded = tuple(Term(bounds.visit(t.node), t.multiplicity) for t in terms)
    scanned = {
        s.relation for n in (*(t.node for t in bounded), *(k.node for k in bounds.sets)) for s in scans(n)
    }
    used = Counter(lookup.key_set for lookup in lookups(bounded))
    sets = (replace(k, is_inlined=k.name not in scanned and used[k.name] == 1) for k in bounds.sets)
    return bounded, tuple(sets)


def lookups(terms: tuple[Term, ...]) -> tuple[Lookup, ...]:
    """What the terms look up: each key set in each kept view once."""
    nodes = (n for term in terms for n in term.node.walk() if isinstance(n, Lookup))
    found = {(n.key_set, n.scan.relation): n for n in nodes}
    return tuple(found.values())


@dataclass
class _Bounds:
    kept: Mapping[str, Placed]
    prefix: str
    sets: list[KeySet] = field(default_factory=list)

    def visit(self, node: Node) -> Node:
        """``node`` with every read below it bounded where it can be."""
        if isinstance(node, Restrict):
            right = self.visit(node.right)
            if isinstance(right, Distinct):
                right = self._staged(right)
            limited = self._limited(self.visit(node.left), right, _pairs(node))
            return Restrict(limited, right, node.keys, node.apart)
        node = node.with_inputs(tuple(self.visit(child) for child in node.inputs))
        if isinstance(node, OneSided):
            pairs = equalities(node.predicates)
            left = node.left
            if not node.keeps_unmatched:
                left = self._limited(left, node.right, pairs)
            # Left rows without a partner stay in an outer or anti join; right rows without one never matter.
            return node.with_inputs((left, self._limited(node.right, left, pairs)))
        if isinstance(node, Join):
            return self._join(node)
        return node

    def _join(self, node: Join) -> Node:
        pairs = equalities(node.predicates)
        factors = list(node.factors)
        for position, factor in enumerate(factors):
            others = Join(tuple(f for f in factors if f is not factor), ())
            factors[position] = self._limited(factor, others, pairs, pairs)
        return Join(tuple(factors), node.predicates)

    def _limited(
        self,
        node: Node,
        other: Node,
        pairs: tuple[tuple[ColumnId, ColumnId], ...],
        within: tuple[tuple[ColumnId, ColumnId], ...] = (),
    ) -> Node:
        """``node`` with its kept views bounded by what ``other`` has in the columns that have to be equal."""
        for scan, seen in list(_kept_scans(node, self.kept)):
            keys = self._keys_of(scan, seen, other, pairs, within)
            if keys is not None:
                node = _replaced(node, scan, keys)
        return node

    def _keys_of(
        self,
        scan: Scan,
        seen: Mapping[str, ColumnId],
        other: Node,
        pairs: tuple[tuple[ColumnId, ColumnId], ...],
        within: tuple[tuple[ColumnId, ColumnId], ...],
    ) -> Lookup | None:
        columns = self.kept[scan.relation].columns
        found: list[tuple[Node, ColumnId]] = []
        for _, shown, type_ in columns:
            limit = next(
                (
                    limited
                    for equal in _equal_to(seen.get(shown), pairs)
                    if (limited := _limit(other, equal, type_, within)) is not None
                ),
                None,
            )
            if limit is None or (found and limit[0] is not found[0][0]):
                return None
            found.append(limit)
        if not found:
            return None
        source = found[0][0]
        types = {f.id: f.type for f in source.fields}
        is_staged = isinstance(source, Scan) and any(s.name == source.relation for s in self.sets)
        if is_staged and all(
            types[column] == type_ for (_, _, type_), (_, column) in zip(columns, found, strict=True)
        ):
            assert isinstance(source, Scan)
            name, columns_of = source.relation, [column[1] for _, column in found]
        else:
            items = tuple(
                Item(state, _as(column, types[column], type_), type_)
                for (state, _, type_), (_, column) in zip(columns, found, strict=True)
            )
            staged = self._staged(Distinct(Map(source, f"{scan.alias}_keys", items)))
            name, columns_of = staged.relation, [state for state, _, _ in columns]
        states = (state for state, _, _ in columns)
        return Lookup(scan, name, tuple(zip(states, columns_of, strict=True)))

    def _staged(self, keys: Distinct) -> Scan:
        """A scan of the key set, which is staged once; equal ones are one."""
        found = next((s for s in self.sets if s.node == keys), None)
        if found is None:
            found = KeySet(f"{self.prefix}_keys_{len(self.sets) + 1}", keys)
            self.sets.append(found)
        columns = tuple((f.name, f.type) for f in keys.fields)
        return Scan(found.name, keys.fields[0].table, columns, Side.DELTA)


def _pairs(node: Restrict) -> tuple[tuple[ColumnId, ColumnId], ...]:
    return tuple(
        (_column(left), _column(right)) for left, right in node.keys if left.is_column and right.is_column
    )


def _column(scalar: Scalar) -> ColumnId:
    (column,) = scalar.columns
    return column


def equalities(predicates: tuple[Scalar, ...]) -> tuple[tuple[ColumnId, ColumnId], ...]:
    """The pairs of columns that the predicates say are equal."""
    return tuple(pair for p in predicates if (pair := p.equality) is not None)


def _equal_to(column: ColumnId | None, pairs: tuple[tuple[ColumnId, ColumnId], ...]) -> Iterator[ColumnId]:
    for left, right in pairs:
        if left == column:
            yield right
        if right == column:
            yield left


def _kept_scans(node: Node, kept: Mapping[str, Placed]) -> Iterator[tuple[Scan, dict[str, ColumnId]]]:
    """Scans of kept views whose rows are rows of ``node``, and what each of their columns is called there."""
    if isinstance(node, Scan):
        if node.relation in kept and node.side is not Side.DELTA:
            yield node, {name: (node.alias, name) for name, _ in node.columns}
    elif isinstance(node, Map):
        shown = {_column(i.value): (node.alias, i.name) for i in node.items if i.value.is_column}
        for scan, seen in _kept_scans(node.input, kept):
            yield scan, {name: shown[column] for name, column in seen.items() if column in shown}
    elif node.passes_rows:
        yield from _kept_scans(node.inputs[0], kept)
    elif isinstance(node, Join):
        for factor in node.factors:
            yield from _kept_scans(factor, kept)
    elif isinstance(node, UnionAll):
        for branch in node.branches:
            shown = {inner.id: outer.id for inner, outer in zip(branch.fields, node.fields, strict=True)}
            for scan, seen in _kept_scans(branch, kept):
                yield scan, {name: shown[column] for name, column in seen.items() if column in shown}


def _limit(
    node: Node, column: ColumnId, type_: SparkType, within: tuple[tuple[ColumnId, ColumnId], ...] = ()
) -> tuple[Node, ColumnId] | None:
    """A change and a column of it that has every value which ``column`` can have in ``node``."""
    found = next((f for f in node.fields if f.id == column), None)
    if found is None or not _compares_alike(found.type, type_):
        return None
    if _is_change(node):
        return node, column
    if isinstance(node, Map):
        item = next(i for i in node.items if (node.alias, i.name) == column)
        return _limit(node.input, _column(item.value), type_) if item.value.is_column else None
    if isinstance(node, Restrict) or (isinstance(node, OneSided) and not node.keeps_unmatched):
        pairs = _pairs(node) if isinstance(node, Restrict) else equalities(node.predicates)
        for equal in _equal_to(column, pairs):
            limited = _limit(node.right, equal, type_)
            if limited is not None:
                return limited
    if node.passes_rows:
        return _limit(node.inputs[0], column, type_)
    if isinstance(node, Join):
        return _limit_in_join(node, column, type_, (*within, *equalities(node.predicates)))
    return None


def _limit_in_join(
    node: Join, column: ColumnId, type_: SparkType, pairs: tuple[tuple[ColumnId, ColumnId], ...]
) -> tuple[Node, ColumnId] | None:
    """By the column itself or by one that is equal to it, over any number of equalities."""
    known = [column]
    for candidate in known:
        known += [c for c in _equal_to(candidate, pairs) if c not in known]
        for factor in node.factors:
            limited = _limit(factor, candidate, type_)
            if limited is not None:
                return limited
    return None


def _compares_alike(one: SparkType, other: SparkType) -> bool:
    """Whether equal values of the two types lie in the same partition once cast to one of them."""
    if one.is_integral and other.is_integral:
        return True
    return one == other and not one.is_floating


def _is_change(node: Node) -> bool:
    """Whether ``node`` is made of staged rows alone."""
    found = scans(node)
    return bool(found) and all(s.side is Side.DELTA for s in found)


def _as(column: ColumnId, actual: SparkType, type_: SparkType) -> Scalar:
    value = Scalar.column(*column)
    return value if actual == type_ else value.cast(type_.text)


def _replaced(node: Node, scan: Scan, lookup: Lookup) -> Node:
    if node is scan:
        return lookup
    if isinstance(node, Lookup):
        return node
    return node.with_inputs(tuple(_replaced(child, scan, lookup) for child in node.inputs))
