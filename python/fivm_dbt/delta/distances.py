"""The distances between columns tell how far in time a row can be from the changes that it meets.

Numbers that are the same are seen likewise: keys that are counted up follow the time.

Every condition ``x − y ≤ c`` between time columns (an equality, a band, a truncation, a projection) is an edge, and
what follows from several of them is a shortest path. A row that is farther from all changes takes part in nothing.
(Interval analysis; ViewDF, section 4.2: a band join reads the parts around the one that is computed.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, product
from math import gcd

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.delta.ways import Columns, Edge, PlacedRead, TooMany, Unknown, Way
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.clock_nodes import ClockFilter, ClockMap, Crossing
from fivm_dbt.ir.frames import Reach, reach_of
from fivm_dbt.ir.instants import HOUR
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.moments import differences, kind_of, moment, written_distance
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Explode, Filter, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import Apart, IfChanged, OneSided, Restrict
from fivm_dbt.ir.reads import Lookup, Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.time_windows import WINDOW_START, TimeWindows
from fivm_dbt.ir.window import Window
from fivm_dbt.naming import CLOCK
from fivm_dbt.parts.shift import Shift
from fivm_dbt.parts.time_units import Unit, unit_of_multiples

MAX_WAYS = 64
"""So many combinations of branches are looked at; of more nothing is known."""

ORIGIN = -1
"""The variable of 1970, from which written times are seen."""

NOW, TODAY = -2, -3
"""The variables of the clock's time and of its date."""


@dataclass
class Distances:
    """The ways by which rows of a query come about, with the variables and edges of each.

    ``staged`` are the definitions of key sets, which are seen through. ``is_utc`` is the session's time zone.
    """

    is_utc: bool
    staged: Mapping[str, Node] = field(default_factory=dict)
    with_origin: bool = False
    """Whether written times and the clock have variables too."""
    with_numbers: bool = False
    """Whether whole numbers have variables too, for which equalities alone are seen."""
    with_frames: bool = False
    """Whether the rows of windows are bounded by their frames, as those of one row are, not those of a change."""
    units: dict[int, Unit] = field(default_factory=dict)
    """Of what period a variable is the start, where that is known."""
    nulls: set[int] = field(default_factory=set)
    """Variables that are NULL in every row."""
    _numbers: Iterator[int] = field(default_factory=count)
    _known: dict[tuple[int, tuple[int, ...], tuple[int, ...] | None], tuple[Node, list[Way]]] = field(
        default_factory=dict
    )
    """What was found of a node in its place: the same for all targets that are not below it."""

    def ways(self, node: Node, target: tuple[int, ...], place: tuple[int, ...] = ()) -> list[Way]:
        """The ways of ``node``, for what they say of the read at ``target``, a path of input numbers below it.

        Raises TooMany, and Unknown where the target stands below an operator that is not known.
        """
        is_below = target[: len(place)] == place
        key = (id(node), place, target if is_below else None)
        if key not in self._known:
            self._known[key] = node, self._ways(node, target, place)
        return self._known[key][1]

    def _ways(self, node: Node, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        if isinstance(node, Scan):
            return self._scan(node, target, place)
        rule = next((rule for types, rule in _RULES if isinstance(node, types)), None)
        if rule is not None:
            return _few(rule(self, node, target, place))
        if target[: len(place)] == place:
            raise Unknown
        return [Way({})]

    def _child(self, node: Node, number: int, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        return self.ways(node.inputs[number], target, (*place, number))

    def _scan(self, node: Scan, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        defined = self.staged.get(node.relation) if node.side is Side.DELTA else None
        if defined is not None:
            inner = self.ways(defined, target, (*place, 0))
            ids = {name: f.id for (name, _), f in zip(node.columns, defined.fields, strict=False)}
            return [self._staged(w, node, ids, place) for w in inner]
        columns = {f.id: (next(self._numbers), f.type) for f in node.fields if self._is_seen(f.type)}
        self.units |= {variable: "day" for variable, type_ in columns.values() if kind_of(type_) == "date"}
        return [Way(columns, (), (PlacedRead(place, node, columns),))]

    def _staged(self, inner: Way, node: Scan, ids: Mapping[str, ColumnId], place: tuple[int, ...]) -> Way:
        """Staged keys, seen through; they are a read too, as they tell their own times once they are staged."""
        columns = {(node.alias, n): inner.columns[i] for n, i in ids.items() if i in inner.columns}
        return Way(columns, inner.edges, (*inner.reads, PlacedRead(place, node, columns)))

    def _is_seen(self, type_: SparkType) -> bool:
        return kind_of(type_) is not None or (self.with_numbers and type_.is_integral)

    def _passed(self, node: Node, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        return self._child(node, 0, target, place)

    def _filtered(
        self, node: Filter | ClockFilter | Crossing, target: tuple[int, ...], place: tuple[int, ...]
    ) -> list[Way]:
        return [self.where(w, node.predicates) for w in self._child(node, 0, target, place)]

    def _mapped(self, node: Map | ClockMap, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        return [self._shown(w, node.alias, node.items) for w in self._child(node, 0, target, place)]

    def _grouped(self, node: Aggregate, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        """Of an aggregate the group keys are those of its rows; nothing follows from what is computed of many rows."""
        return [self._shown(w, node.alias, node.keys) for w in self._child(node, 0, target, place)]

    def _windowed(self, node: Window, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        """All rows with the same values of PARTITION BY have an influence: of other columns nothing follows."""
        shared = {i.value for i in node.partition}
        items = tuple(i for i in node.items if i.value in shared)
        ways = self._child(node, 0, target, place)
        shown = [self._shown(w, node.alias, items) for w in ways]
        if not self.with_frames:
            return shown
        return [self._framed(node, before, after) for before, after in zip(ways, shown, strict=True)]

    def _framed(self, node: Window, inner: Way, shown: Way) -> Way:
        """With the column by which windows are ordered: a row is as far from those that it is computed from."""
        columns, edges = dict(shown.columns), list(shown.edges)
        values = tuple(i.value for i in node.items)
        for column, reach in self._reach(values, inner.columns).items():
            ordered = inner.columns.get(column)
            own = [i for i in node.items if i.value == Scalar.column(*column)]
            if ordered is None or not own or (node.alias, own[0].name) in columns:
                continue
            variable = next(self._numbers)
            columns[node.alias, own[0].name] = (variable, ordered[1])
            if ordered[0] in self.units:
                self.units[variable] = self.units[ordered[0]]
            if reach.before is not None:
                edges.append(Edge(variable, ordered[0], reach.before, False))
            if reach.after is not None:
                edges.append(Edge(ordered[0], variable, reach.after, False))
        return replace(shown, columns=columns, edges=tuple(edges))

    def _reach(self, values: tuple[Scalar, ...], columns: Columns) -> Mapping[ColumnId, Reach]:
        def type_of(column: ColumnId) -> SparkType | None:
            return self._type(column, columns)

        return reach_of(values, lambda node, by: written_distance(node, by, type_of, is_utc=self.is_utc))

    def _in_windows(self, node: TimeWindows, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        """A window begins no later than each of its rows, and less than its length before.

        Its start is a number of microseconds; nothing but an instant is computed from it.
        """
        ways = []
        for way in self._child(node, 0, target, place):
            shown = self._shown(way, node.alias, (Item(WINDOW_START, _instant(node.at), TIMESTAMP),))
            at = shown.columns[node.alias, WINDOW_START][0]
            start = next(self._numbers)
            unit = unit_of_multiples(gcd(node.slide, node.offset)) if self.is_utc else None
            if unit is not None:
                self.units[start] = unit
            edges = (
                *shown.edges,
                Edge(start, at, Shift(), False),
                Edge(at, start, Shift(0, node.length - 1), False),
            )
            columns = {**way.columns, (node.alias, WINDOW_START): (start, TIMESTAMP)}
            ways.append(replace(shown, columns=columns, edges=edges))
        return ways

    def _by_key(self, node: Local, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        return [replace(w, columns={}) for w in self._child(node, 0, target, place)]

    def _joined(self, node: Join, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        factors = [self._child(node, n, target, place) for n in range(len(node.factors))]
        return [self.where(w, node.predicates) for w in _combined(factors)]

    def _looked_up(self, node: OneSided, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        """Left rows of an outer or an anti join need no partner: from these nothing follows for others.

        A right row that no left row matches has no influence in any of them.
        """
        left = self._child(node, 0, target, place)
        is_below = target[: len(place) + 1] == (*place, 1)
        if not is_below and node.keeps_unmatched:
            return left
        right = self._child(node, 1, target, place)
        ways = [
            (seen, self.where(_both(seen, other), node.predicates)) for seen, other in product(left, right)
        ]
        return [replace(way, columns=seen.columns) for seen, way in ways]

    def _restricted(self, node: Restrict, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        """Keys compare null-safe. Both sides may call columns alike."""
        ways = []
        for left, right in product(self._child(node, 0, target, place), self._child(node, 1, target, place)):
            edges = [*left.edges, *right.edges]
            for one, other in node.keys:
                edges += self._same(one, left.columns, other, right.columns)
            if node.apart is not None:
                edges += self._apart(node.apart, left.columns, right.columns)
            ways.append(Way(left.columns, tuple(edges), (*left.reads, *right.reads)))
        return ways

    def _any_branch(self, node: UnionAll, target: tuple[int, ...], place: tuple[int, ...]) -> list[Way]:
        ways = []
        for number, branch in enumerate(node.branches):
            for way in self._child(node, number, target, place):
                pairs = zip(branch.fields, node.fields, strict=True)
                columns = {o.id: way.columns[i.id] for i, o in pairs if i.id in way.columns}
                ways.append(replace(way, columns=columns))
        return ways

    def where(self, way: Way, predicates: tuple[Scalar, ...]) -> Way:
        """The way with the distances that conditions imply."""
        edges = list(way.edges)
        for predicate in predicates:
            if not any(self._type(c, way.columns) for c in predicate.columns):
                continue
            edges += self._equal(predicate, way.columns)
            for d in differences(predicate, lambda c: self._type(c, way.columns), is_utc=self.is_utc):
                later, earlier = self._variable(d.later, way.columns), self._variable(d.earlier, way.columns)
                if later is not None and earlier is not None:
                    edges.append(Edge(later, earlier, d.most, d.is_strict))
        return replace(way, edges=tuple(edges))

    def _equal(self, predicate: Scalar, columns: Columns) -> Iterator[Edge]:
        """Two numbers that are the same."""
        pair = predicate.equality
        one, other = (None, None) if pair is None else (columns.get(column) for column in pair)
        if one is not None and other is not None and one[1].is_integral and other[1].is_integral:
            yield from _no_distance(one[0], other[0], is_strict=not predicate.is_null_safe)

    def _shown(self, way: Way, alias: str, items: tuple[Item, ...]) -> Way:
        """The columns of a projection: those of its input, or near them."""
        columns: dict[ColumnId, tuple[int, SparkType]] = {}
        edges = list(way.edges)
        for item in items:
            if not self._is_seen(item.type):
                continue
            if item.type.is_integral:
                same = _number(item.value, way.columns)
                columns[alias, item.name] = (next(self._numbers) if same is None else same, item.type)
                continue
            found = moment(item.value, lambda c: self._type(c, way.columns), is_utc=self.is_utc)
            inner = None if found is None else self._variable(found.column, way.columns)
            if found is None or inner is None:
                columns[alias, item.name] = (next(self._numbers), item.type)
                if item.value.is_null:
                    self.nulls.add(columns[alias, item.name][0])
            elif item.value.is_column:
                columns[alias, item.name] = (inner, item.type)
            else:
                variable = next(self._numbers)
                columns[alias, item.name] = (variable, item.type)
                if found.unit is not None:
                    self.units[variable] = found.unit
                edges += [
                    Edge(variable, inner, found.above, False),
                    Edge(inner, variable, found.below, False),
                ]
        return replace(way, columns=columns, edges=tuple(edges))

    def _apart(self, apart: Apart, here: Columns, there: Columns) -> Iterator[Edge]:
        later, earlier = (
            known.get(next(iter(value.columns))) if value.is_column else None
            for value, known in ((apart.later, here), (apart.earlier, there))
        )
        # A zone is up to 18 hours from UTC, and a date that begins there may have begun a day before.
        before, behind = (0, 0) if self.is_utc else (18 * HOUR, 42 * HOUR)
        if later is not None and earlier is not None:
            yield Edge(later[0], earlier[0], Shift(0, apart.most, behind), False)
            yield Edge(earlier[0], later[0], Shift(slack=before), False)

    def _same(self, one: Scalar, here: Columns, other: Scalar, there: Columns) -> Iterator[Edge]:
        numbers = _number(one, here), _number(other, there)
        if numbers[0] is not None and numbers[1] is not None:
            yield from _no_distance(numbers[0], numbers[1], is_strict=False)
            return
        left = moment(one, lambda c: self._type(c, here), is_utc=self.is_utc)
        right = moment(other, lambda c: self._type(c, there), is_utc=self.is_utc)
        if left is None or right is None or left.kind != right.kind:
            return
        a, b = self._variable(left.column, here), self._variable(right.column, there)
        if a is not None and b is not None:
            yield Edge(a, b, left.below + right.above, False)
            yield Edge(b, a, right.below + left.above, False)

    def _type(self, column: ColumnId, columns: Columns) -> SparkType | None:
        if column[0].startswith(CLOCK):
            return SparkType(column[1]) if self.with_origin else None
        known = columns.get(column)
        return None if known is None else known[1]

    def _variable(self, column: ColumnId | None, columns: Columns) -> int | None:
        if column is None:
            return ORIGIN if self.with_origin else None
        if column[0].startswith(CLOCK):
            return (TODAY if column[1] == "date" else NOW) if self.with_origin else None
        known = columns.get(column)
        return None if known is None else known[0]


_RULES: tuple[tuple[type[Node] | tuple[type[Node], ...], Callable[..., list[Way]]], ...] = (
    (Lookup, Distances._passed),
    (TimeWindows, Distances._in_windows),
    ((Distinct, Explode, IfChanged), Distances._passed),
    ((Filter, ClockFilter, Crossing), Distances._filtered),
    ((Map, ClockMap), Distances._mapped),
    (Aggregate, Distances._grouped),
    (Window, Distances._windowed),
    (Local, Distances._by_key),
    (Join, Distances._joined),
    (OneSided, Distances._looked_up),
    (Restrict, Distances._restricted),
    (UnionAll, Distances._any_branch),
)


def _instant(micros: Scalar) -> Scalar:
    """The time that is counted in microseconds."""
    return Scalar.parse(f"TIMESTAMP_MICROS({micros.sql})")


def _number(value: Scalar, columns: Columns) -> int | None:
    """The variable of a column of whole numbers; None of anything else."""
    known = columns.get(next(iter(value.columns))) if value.is_column else None
    return known[0] if known is not None and known[1].is_integral else None


def _no_distance(one: int, other: int, *, is_strict: bool) -> Iterator[Edge]:
    """That two variables have the same value."""
    yield Edge(one, other, Shift(), is_strict)
    yield Edge(other, one, Shift(), is_strict)


def _both(one: Way, other: Way) -> Way:
    return Way({**one.columns, **other.columns}, one.edges + other.edges, one.reads + other.reads)


def _combined(factors: list[list[Way]]) -> list[Way]:
    """Every combination of the factors' ways."""
    ways = [Way({})]
    for factor in factors:
        ways = _few([_both(one, other) for one, other in product(ways, factor)])
    return ways


def _few(ways: list[Way]) -> list[Way]:
    if len(ways) > MAX_WAYS:
        raise TooMany
    return ways
