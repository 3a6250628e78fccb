"""MIN, MAX and the like over a join are read off what is added up below it, relation by relation: a view tree.

    ``γ_{a.g; max(a.x + b.y)}(a ⋈_k b) = γ_{a.g; max(a.x + m)}(a ⋈_k γ_{k; m = max(b.y)}(b))``

What counts once however often it is there can be added up at any height, as sums in a ring are. But there is no
inverse, so that a deletion has its group computed anew: of ``b`` by ``k``, and then of what that meets. The rows of a
group are those of one relation joined with groups of the others, where the join has all of their pairs. What is added
up, and how it is put together, is :mod:`fivm_dbt.rings.extremes`. (F-IVM article, Definition 1. The field calls it
eager aggregation: Yan and Larson, Eager aggregation and lazy aggregation, 1995.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from fivm_dbt.catalog import Catalog, SparkType
from fivm_dbt.functions.of_parts import of_itself
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.build import aggregate
from fivm_dbt.ir.calls import Call
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import unique_name
from fivm_dbt.rewrite.flatten_joins import joined, parts_of_join
from fivm_dbt.rings.extremes import Extent, Term, read, read_extent, taken

_ENDS = {"min": "min", "bool_and": "min", "max": "max", "bool_or": "max"}
"""By function which end of its values it is. False is less than true."""


def nest_extremes(node: Node, catalog: Catalog, session: Sequence[tuple[str, str]]) -> Node:
    """``node`` with aggregates of least and greatest values over joins as aggregates of aggregates.

    Integers are added and multiplied where a ``session`` stops at what has no room (``spark.sql.ansi.enabled``).
    """
    names = {f.table.lower() for each in node.walk() for f in each.fields}
    keys = {r.name: r.keys for r in catalog.relations}
    return _Nesting(keys, dict(session).get("ansi") == "true", names).visited(node)


@dataclass(frozen=True)
class _Nesting:
    keys: Mapping[str, Sequence[tuple[str, ...]]]
    may_add: bool
    names: set[str]

    def visited(self, node: Node) -> Node:
        node = node.with_inputs(tuple(self.visited(child) for child in node.inputs))
        if not isinstance(node, Aggregate) or node.factored is not None or node.near is not None:
            return node
        if not node.calls or not all(map(_counts_once, node.calls)):
            return node
        factors, predicates = parts_of_join(node.input)
        scans = [factor for factor in factors if isinstance(factor, Scan)]
        if len(scans) < len(factors) or any(len(p.tables) > 2 for p in predicates):
            return node
        below = _tree(scans, predicates, node.keys)
        named = {scan.alias: scan for scan in scans}
        return node if below is None else _Nested(self, node, named, predicates, below).aggregate()

    def fresh(self, alias: str) -> str:
        new = unique_name(alias, self.names)
        self.names.add(new.lower())
        return new


def _tree(
    scans: Sequence[Scan], predicates: Sequence[Scalar], keys: Sequence[Item]
) -> dict[str, list[str]] | None:
    """Which relations hang below which: a tree from the one with most of the keys; None where joins are no tree."""
    if len(scans) < 2:
        return None
    pairs = {p.tables for p in predicates if len(p.tables) == 2}
    if len(pairs) != len(scans) - 1:
        return None
    wanted = [column for key in keys for column in key.value.columns]
    top = max(scans, key=lambda scan: sum(table == scan.alias for table, _ in wanted)).alias
    below: dict[str, list[str]] = {top: []}
    waiting = [top]
    while waiting:
        here = waiting.pop(0)
        for scan in scans:
            if scan.alias not in below and frozenset((here, scan.alias)) in pairs:
                below[here].append(scan.alias)
                below[scan.alias] = []
                waiting.append(scan.alias)
    return below if len(below) == len(scans) else None


@dataclass(frozen=True)
class _Rows:
    """A join: its factors and conditions, and what columns and extents of the relations below are called in it."""

    factors: tuple[Node, ...]
    predicates: tuple[Scalar, ...]
    meaning: Mapping[ColumnId, Scalar] = field(default_factory=dict)
    extents: Sequence[tuple[int, frozenset[str], Extent]] = ()
    """By the number of a call and some relations what its part over them may be."""


@dataclass(frozen=True)
class _Nested:
    """One aggregate, of relations in a tree: ``below`` has those under each."""

    nesting: _Nesting
    of_join: Aggregate
    scans: Mapping[str, Scan]
    predicates: tuple[Scalar, ...]
    below: Mapping[str, Sequence[str]]

    def aggregate(self) -> Node:
        """The aggregate over what is added up below it; itself where nothing is gained."""
        top = next(iter(self.below))
        rows = self._rows(top)
        if len(rows.factors) == len(self.scans) and all(isinstance(f, Scan) for f in rows.factors):
            return self.of_join
        alone = tuple(p for p in self.predicates if not p.tables)
        calls = []
        for number, call in enumerate(self.of_join.calls):
            assert call.written is not None
            value = self._value(number, self.terms[number], rows)
            if value is None:
                calls.append(replace(call, written=call.written.substitute(rows.meaning.get)))
            else:
                end = _end(call) or ""
                calls.append(replace(call, written=aggregate(end, value.cast(call.type.text))))
        keys = tuple(replace(k, value=k.value.substitute(rows.meaning.get)) for k in self.of_join.keys)
        return replace(
            self.of_join,
            input=joined(rows.factors, (*rows.predicates, *alone)),
            keys=keys,
            calls=tuple(calls),
        )

    @cached_property
    def types(self) -> dict[ColumnId, SparkType]:
        return {f.id: f.type for scan in self.scans.values() for f in scan.fields}

    @cached_property
    def terms(self) -> tuple[Term | None, ...]:
        """What each call is the least or greatest value of, None of one that is not taken apart."""
        return tuple(self._term(call) for call in self.of_join.calls)

    def _term(self, call: AggregateCall) -> Term | None:
        assert call.written is not None
        if _end(call) is None:
            return None
        (argument,) = Call.of(call.written).arguments
        term = read(argument, self.types.__getitem__, may_add=self.nesting.may_add)
        if term is None:
            return None
        subtrees = [self._subtree(alias) for alias in self.below]
        is_split = all(taken(term, each) is not None for each in subtrees if term.tables & each)
        return term if is_split else None

    def _subtree(self, alias: str) -> frozenset[str]:
        return frozenset({alias}).union(*(self._subtree(each) for each in self.below[alias]))

    def _rows(self, alias: str) -> _Rows:
        """A relation, joined with what is added up of those below it."""
        factors: list[Node] = [self.scans[alias]]
        predicates = [p for p in self.predicates if p.tables == {alias}]
        meaning: dict[ColumnId, Scalar] = {}
        extents: list[tuple[int, frozenset[str], Extent]] = []
        for child in self.below[alias]:
            rows = self._rows(child)
            added = self._added(child, rows) or rows
            factors += added.factors
            meaning |= added.meaning
            extents += added.extents
            predicates += added.predicates
            links = (p for p in self.predicates if p.tables == {alias, child})
            predicates += (p.substitute(added.meaning.get) for p in links)
        return _Rows(tuple(factors), tuple(predicates), meaning, extents)

    def _added(self, alias: str, rows: _Rows) -> _Rows | None:
        """The rows under a relation, by what is asked of them from above; None where that leaves as many."""
        tables = self._subtree(alias)
        asked = dict.fromkeys((*self._linked(tables), *self._shown_whole(tables)))
        if self._are_single(asked, tables):
            return None
        name = self.nesting.fresh(f"{alias}_extremes")
        used: set[str] = set()
        keys, meaning = [], {}
        for table, column in asked:
            key = unique_name(column, used)
            used.add(key.lower())
            value = Scalar.column(table, column)
            shown = value.substitute(rows.meaning.get)
            keys.append(Item(key, shown, self.types[table, column]))
            meaning[table, column] = Scalar.column(name, key)
        calls: dict[tuple[str, Scalar], AggregateCall] = {}
        extents = []
        for number, term in enumerate(self.terms):
            found = None if term is None else taken(term, tables)
            if term is None or found is None or not term.tables & tables:
                continue
            part = self._term_of(number, found[1], rows)
            ends: dict[str, Scalar | None] = {"min": None, "max": None}
            for end in self._ends(number, found[0]):
                value_of = part.least() if end == "min" else part.greatest()
                if value_of is None:
                    return None
                same = end, value_of
                if same not in calls:
                    column = unique_name(f"{end}_{number + 1}", used)
                    used.add(column.lower())
                    written = aggregate(end, value_of.cast(part.type.text) if part.parts else value_of)
                    calls[same] = AggregateCall.as_written(column, end, written, part.type)
                ends[end] = Scalar.column(name, calls[same].name)
            extents.append((number, tables, Extent(ends["min"], ends["max"])))
        node = Aggregate(joined(rows.factors, rows.predicates), name, tuple(keys), tuple(calls.values()))
        return _Rows((node,), (), meaning, extents)

    def _ends(self, number: int, rest: Term) -> Iterator[str]:
        """Which of the least and greatest values of the part that is not in the ``rest`` a call has a use for."""
        sign = rest.sign * (-1 if _end(self.of_join.calls[number]) == "min" else 1)
        if sign <= 0:
            yield "min"
        if sign >= 0:
            yield "max"

    def _value(self, number: int, term: Term | None, rows: _Rows) -> Scalar | None:
        """What a call is the extreme of, over rows with extents; None where it stays as it is written."""
        if term is None or all(n != number for n, _, _ in rows.extents):
            return None
        over = self._term_of(number, term, rows)
        return over.least() if _end(self.of_join.calls[number]) == "min" else over.greatest()

    @staticmethod
    def _term_of(number: int, term: Term, rows: _Rows) -> Term:
        """A term with the extents of what is added up below the rows."""
        for call, tables, extent in rows.extents:
            if call == number and term.tables & tables:
                found = taken(term, tables)
                assert found is not None
                term = read_extent(found[0], extent)
        return term

    def _linked(self, tables: frozenset[str]) -> Iterator[ColumnId]:
        """The columns of some relations by which they are joined with others, and grouped."""
        values: list[Scalar] = [p for p in self.predicates if not p.tables <= tables]
        for value in (*values, *(key.value for key in self.of_join.keys)):
            yield from sorted(column for column in value.columns if column[0] in tables)

    def _shown_whole(self, tables: frozenset[str]) -> Iterator[ColumnId]:
        """The columns of some relations in calls that are not taken apart."""
        for call, term in zip(self.of_join.calls, self.terms, strict=True):
            if term is None and call.written is not None:
                yield from sorted(column for column in call.written.columns if column[0] in tables)

    def _are_single(self, asked: Collection[ColumnId], tables: frozenset[str]) -> bool:
        """Whether groups of some relations by the ``asked`` columns are single rows, or as good as these."""
        every = {column for column in self.types if column[0] in tables}
        if every <= set(asked) and not every <= set(self._linked(tables)):
            return True
        known = {(table, column.lower()) for table, column in asked}
        pairs = [p.equality for p in self.predicates if p.tables <= tables]
        same = [{(table, column.lower()) for table, column in pair} for pair in pairs if pair is not None]
        unique: set[str] = set()
        for _ in tables:
            for pair in same:
                known |= pair if pair & known else set()
            for alias in tables - unique:
                keys = self.nesting.keys.get(self.scans[alias].relation, ())
                if any(known.issuperset((alias, column) for column in key) for key in keys):
                    unique.add(alias)
                    known |= {(alias, field.name.lower()) for field in self.scans[alias].fields}
        return unique == tables


def _counts_once(call: AggregateCall) -> bool:
    """Whether it comes to the same however often a row is there."""
    if call.written is None:
        return False
    called, known = Call.of(call.written), of_itself(call.written)
    is_set = called.is_distinct or called.name == "collect_set"
    return is_set or (known is not None and known.is_idempotent)


def _end(call: AggregateCall) -> str | None:
    """Which end of its values a call is, None of any other."""
    if call.written is None or Call.of(call.written).is_filtered:
        return None
    known = of_itself(call.written)
    return _ENDS.get(known.name) if known is not None else None
