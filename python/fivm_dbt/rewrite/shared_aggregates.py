"""Aggregates of one join that differ in what they count and under which conditions become one aggregate.

With conditions ``p`` and ``q`` on rows of ``r``::

    SELECT k, SUM(x) FROM r WHERE p GROUP BY k          SELECT k, SUM(y) FROM r WHERE q GROUP BY k

are what one aggregate shows where it counts rows of theirs::

    SELECT k, COUNT(CASE WHEN p THEN 1 END) AS rows_1, SUM(CASE WHEN p THEN x END),
              COUNT(CASE WHEN q THEN 1 END) AS rows_2, SUM(CASE WHEN q THEN y END) FROM r WHERE p OR q GROUP BY k

So one inner view is kept, and read by as many. Only sums in a ring are shared: they come and go by addition. What an
aggregate adds up under its condition has to be of one relation, so that a view tree can add it up below a join.

With ``spark.sql.ansi.enabled`` a cast or a division may stop a statement. So what may stop one is asked of no row of
which none of the aggregates asks it: conditions stay behind those that may guard them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import dropwhile

from fivm_dbt.catalog.types import BIGINT, SparkType
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.build import all_of, any_of, case, is_positive
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.reads import Read, Scan
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.total import is_total
from fivm_dbt.naming import unique_name
from fivm_dbt.rewrite.flatten_joins import joined, parts_of_join

Shape = tuple[tuple[str, ...], frozenset[Scalar], tuple[Scalar, ...]]
"""The relations that are joined, how, and by what their rows are grouped."""

_INT = SparkType("int")


def share_aggregates(node: Node) -> Node:
    """``node`` with one aggregate in the place of several of the same rows and groups."""
    found: defaultdict[Shape, list[_Member]] = defaultdict(list)
    for each in node.walk():
        member = _member(each) if isinstance(each, Aggregate) else None
        if member is not None:
            found[member.shape].append(member)
    alike = [members for members in found.values() if _can_share(members)]
    if not alike:
        return node
    taken = {f.table.lower() for each in node.walk() for f in each.fields}
    instead: dict[Aggregate, Node] = {}
    for members in alike:
        instead |= _Shared.of(members, taken).shown(members)
    return _over(node, instead)


def _over(node: Node, instead: Mapping[Aggregate, Node]) -> Node:
    if isinstance(node, Aggregate) and node in instead:
        return instead[node]
    return node.with_inputs(tuple(_over(each, instead) for each in node.inputs))


@dataclass(frozen=True)
class _Member:
    """An aggregate of a join, with its scalars over the relations by their numbers: ``f0``, ``f1``...

    ``predicates`` are all conditions in the order in which they are written, ``own`` those on rows of single relations.
    """

    aggregate: Aggregate
    scans: tuple[Scan, ...]
    predicates: tuple[Scalar, ...]
    keys: tuple[Scalar, ...]
    calls: tuple[AggregateCall, ...]

    @cached_property
    def own(self) -> tuple[Scalar, ...]:
        return tuple(p for p in self.predicates if len(p.tables) < 2)

    @cached_property
    def joined(self) -> frozenset[Scalar]:
        """The conditions by which the relations are joined."""
        return frozenset(self.predicates).difference(self.own)

    @property
    def shape(self) -> Shape:
        return tuple(s.relation.lower() for s in self.scans), self.joined, self.keys

    @property
    def meaning(self) -> tuple[object, ...]:
        """What it computes, whatever its columns are called."""
        return frozenset(self.own), frozenset((c.function, c.argument) for c in self.calls)

    @cached_property
    def _types(self) -> dict[ColumnId, SparkType]:
        return {(_number(n), name): t for n, scan in enumerate(self.scans) for name, t in scan.columns}

    @property
    def may_see_all(self) -> bool:
        """Whether rows may be joined and grouped that its conditions leave out: no key or join stops a statement."""
        is_joined = all(is_total(p, self._types) for p in self.joined)
        return is_joined and all(key.is_column for key in self.keys)

    def unguarded(self, common: Collection[Scalar]) -> set[Scalar]:
        """Conditions among ``common`` ones that may stop a statement, and stand behind one that is not."""
        rest = tuple(dropwhile(common.__contains__, self.own))
        return {p for p in rest if p in common and not is_total(p, self._types)}

    def condition(self, common: frozenset[Scalar]) -> Scalar | None:
        """What holds for its rows alone, None for nothing."""
        own = [p for p in dict.fromkeys(self.own) if p not in common]
        return all_of(*own) if own else None


def _member(aggregate: Aggregate) -> _Member | None:
    """What can be shared of an aggregate, None for nothing."""
    factors, conditions = parts_of_join(aggregate.input)
    scans = tuple(f.source for f in factors if isinstance(f, Read) and f.source is f)
    is_plain = not aggregate.is_global and aggregate.factored is None and aggregate.near is None
    if not is_plain or len(scans) < len(factors) or not all(map(_is_sum, aggregate.calls)):
        return None
    names = {scan.alias: _number(n) for n, scan in enumerate(scans)}
    predicates = tuple(moved(p, names) for p in conditions)
    own = tuple(p for p in predicates if len(p.tables) < 2)
    calls = tuple(
        replace(c, argument=None if c.argument is None else moved(c.argument, names)) for c in aggregate.calls
    )
    if any(len(_tables((*own, *((c.argument,) if c.argument else ())))) > 1 for c in calls):
        return None
    keys = tuple(moved(key.value, names) for key in aggregate.keys)
    return _Member(aggregate, scans, predicates, keys, calls)


def _number(position: int) -> str:
    """What a relation is called in the scalars of a member."""
    return f"f{position}"


def _can_share(members: Sequence[_Member]) -> bool:
    """Whether they differ. Conditions of several relations are no condition on the rows of all of them."""
    if len({m.meaning for m in members}) < 2:
        return False
    common = _common(members)
    conditions = [m.condition(common) for m in members]
    known = [c for c in conditions if c is not None]
    return len(known) < len(conditions) or len(_tables(known)) < 2 or members[0].may_see_all


def _common(members: Sequence[_Member]) -> frozenset[Scalar]:
    """The conditions that all of them have, and that may be asked of a row before the others are."""
    common = frozenset.intersection(*(frozenset(m.own) for m in members))
    while late := set().union(*(m.unguarded(common) for m in members)):
        common -= late
    return common


def _is_sum(call: AggregateCall) -> bool:
    is_known = call.function in ("count", "sum", "avg") and call.written is None
    return is_known and len(call.arguments) < 2


def _tables(scalars: Iterable[Scalar]) -> frozenset[str]:
    return frozenset().union(*(s.tables for s in scalars))


class _Shared:
    """The aggregate that several members are shown from."""

    def __init__(
        self,
        scans: tuple[Scan, ...],
        common: frozenset[Scalar],
        keys: frozenset[str],
        alias: str,
        taken: set[str],
    ) -> None:
        self._scans = scans
        self._common = common
        self._keys = keys
        self._taken = taken
        self._alias = self._fresh(alias)
        self._calls: dict[tuple[str, Scalar | None], AggregateCall] = {}

    @staticmethod
    def of(members: Sequence[_Member], taken: set[str]) -> _Shared:
        """Over the relations of the first one."""
        first = members[0]
        common = _common(members)
        scans = []
        for number, scan in enumerate(first.scans):
            columns = dict(c for m in members for c in m.scans[number].columns)
            scans.append(replace(scan, columns=tuple(columns.items())))
        keys = frozenset(key.name.lower() for key in first.aggregate.keys)
        return _Shared(tuple(scans), common, keys, first.aggregate.alias, taken)

    def shown(self, members: Sequence[_Member]) -> dict[Aggregate, Node]:
        """Each of the members from the shared aggregate."""
        read = {member.aggregate: self._columns(member) for member in members}
        first = members[0]
        conditions = [m.condition(self._common) for m in members]
        known = [c for c in dict.fromkeys(conditions) if c is not None]
        is_whole = None in conditions or len(_tables(known)) > 1
        predicates = [p for p in first.predicates if p in first.joined or p in self._common]
        predicates += [] if is_whole else [any_of(*known)]
        placed = tuple(self._placed(p) for p in predicates)
        rows = joined(self._scans, placed)
        keys = tuple(
            replace(key, value=self._placed(value))
            for key, value in zip(first.aggregate.keys, first.keys, strict=True)
        )
        shared = Aggregate(rows, self._alias, keys, tuple(self._calls.values()))
        # Two of them may be joined: each has an aggregate of its own aliases, which are one inner view.
        each = (shared, *(renamed(shared, self._fresh)[0] for _ in members[1:]))
        return {m.aggregate: _map(m, own, *read[m.aggregate]) for m, own in zip(members, each, strict=True)}

    def _columns(self, member: _Member) -> tuple[str | None, tuple[str, ...]]:
        """The column that counts a member's rows, if not all rows are its own, and those of its calls."""
        condition = member.condition(self._common)
        one = None if condition is None else case(condition, Scalar.number(1))
        counted = self._called(AggregateCall("rows", "count", one, None if one is None else _INT, BIGINT))
        called = []
        for call in member.calls:
            if call.argument is None:
                called.append(counted)
            elif condition is None:
                called.append(self._called(call))
            else:
                called.append(self._called(replace(call, argument=case(condition, call.argument))))
        return None if condition is None else counted, tuple(called)

    def _called(self, call: AggregateCall) -> str:
        """The column of a call, which is added once."""
        same = (call.function, call.argument)
        if same not in self._calls:
            name = unique_name(call.name, {c.name.lower() for c in self._calls.values()} | self._keys)
            argument = None if call.argument is None else self._placed(call.argument)
            self._calls[same] = replace(call, name=name, argument=argument)
        return self._calls[same].name

    def _placed(self, scalar: Scalar) -> Scalar:
        """A scalar over the relations by their numbers, over those of the shared aggregate."""
        return moved(scalar, {_number(n): scan.alias for n, scan in enumerate(self._scans)})

    def _fresh(self, alias: str) -> str:
        new = unique_name(alias, self._taken)
        self._taken.add(new.lower())
        return new


def _map(member: _Member, shared: Aggregate, counted: str | None, called: tuple[str, ...]) -> Map:
    """The member's columns, of the groups in which it has rows."""
    has_rows = () if counted is None else (is_positive(Scalar.column(shared.alias, counted)),)
    rows = joined((shared,), has_rows)
    names = (*(key.name for key in shared.keys), *called)
    items = tuple(
        Item(field.name, Scalar.column(shared.alias, name), field.type)
        for field, name in zip(member.aggregate.fields, names, strict=True)
    )
    return Map(rows, member.aggregate.alias, items)
