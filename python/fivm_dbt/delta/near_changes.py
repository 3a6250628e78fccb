"""The times of changes bound reads of the whole relations that the changes meet.

In ``Δa ⋈ b`` with ``b.ts between a.ts - interval '5' minutes and a.ts`` a row of b that is more than five minutes
before all changed rows of a, or after them, has no partner. The times of a staged change are known before b is read; as
literals they let Delta skip files. What is left out matches nothing, so that the rows of the delta are the same.
(Interval analysis; ViewDF, sections 4.2 and 4.3: late data in part p is met by the parts around p.)

Keys that are counted up follow the time, so that the numbers of a change bound a read as its times do: in
``Δtrades ⋈ history`` by ``trade_id`` those of this week's orders lie together at the end of the history.

Where the changes do not tell how far away the rows are that they meet, keys that are staged may: the nearest day before
a change on which a key has a row is any day, but it is among the staged keys. They are asked for their times where the
rows to be read lie in the order of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.delta.distances import Distances
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.term import Term
from fivm_dbt.delta.ways import PlacedRead, TooMany, Unknown, Way
from fivm_dbt.ir.moments import kind_of
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.reads import Read, Scan, Within, reads
from fivm_dbt.ir.within import Near, TimeBound
from fivm_dbt.naming import old_rows

Place = tuple[int, ...]

IsOrdered = Callable[[str, str], bool]
"""Whether the rows of a relation lie in the order of a column of whole numbers, or of times."""


@dataclass(frozen=True)
class Sources:
    """Whose staged changes tell their times: by relation, the columns that do, under the names in the staged rows.

    ``renamed`` are relations that stand for a part of another one's change. ``staged`` are the times of key sets, which
    are asked only where changes tell nothing.
    """

    columns: Mapping[str, Mapping[str, str]]
    renamed: Mapping[str, str]
    staged: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @staticmethod
    def of(relations: Mapping[str, Mapping[str, str]]) -> Sources:
        return Sources(relations, {old_rows(name): name for name in relations})

    def with_staged(self, key_sets: Iterable[KeySet]) -> Sources:
        """With the times of keys that are staged too."""
        times = {
            k.name: {f.name: f.name for f in k.node.fields if kind_of(f.type) is not None}
            for k in key_sets
            if not k.is_inlined
        }
        return replace(self, staged=times)

    def find(self, relation: str, column: str) -> tuple[str, str] | None:
        """The relation and the staged column that a column of a change is."""
        name = self.renamed.get(relation, relation)
        staged = self.columns.get(name, self.staged.get(name, {})).get(column)
        return None if staged is None else (name, staged)


@dataclass(frozen=True)
class NearChanges:
    """Bounds every read whose distance to the changes is known.

    ``sources`` tell where changes are. ``is_ordered`` is asked of the numbers by which a read could be bounded, and of
    times where staged keys have to be asked for theirs.
    """

    sources: Sources
    is_utc: bool
    is_ordered: IsOrdered

    def bounded(
        self, terms: tuple[Term, ...], key_sets: tuple[KeySet, ...]
    ) -> tuple[tuple[Term, ...], tuple[KeySet, ...]]:
        """``terms`` and ``key_sets`` with these bounds."""
        distances = Distances(self.is_utc, {k.name: k.node for k in key_sets}, with_numbers=True)
        asked = self.sources.with_staged(key_sets)
        bounded = tuple(Term(self._bounded(t.node, distances, asked), t.multiplicity) for t in terms)
        sets = tuple(KeySet(k.name, self._bounded(k.node, distances, asked), k.is_inlined) for k in key_sets)
        return bounded, sets

    def _bounded(self, root: Node, distances: Distances, asked: Sources) -> Node:
        if not any(_is_change_with_time(n) for n in _all_nodes(root, distances.staged)):
            return root

        def visit(node: Node, place: Place) -> Node:
            if isinstance(node, Read):
                inner = place if node.lookup is None else (*place, 0)
                bounds = self._bounds(root, node.source, inner, distances, asked)
                return Within(node, bounds) if bounds else node
            return node.with_inputs(tuple(visit(c, (*place, n)) for n, c in enumerate(node.inputs)))

        return visit(root, ())

    def _bounds(
        self, root: Node, scan: Scan, place: Place, distances: Distances, asked: Sources
    ) -> tuple[TimeBound, ...]:
        """What is known of the times and numbers of a scan; of times with both ends, if there is any."""
        columns = [(name, type_) for name, type_ in scan.columns if _may_bound(type_)]
        if scan.side is Side.DELTA or not columns:
            return ()
        try:
            ways = distances.ways(root, place)
        except (TooMany, Unknown):
            return ()
        met = [(way, read) for way in ways for read in way.reads if read.place == place]
        if not met:
            return ()
        bounds = [b for name, type_ in columns if (b := _bound(name, type_, met, self.sources)) is not None]
        times = [b for b in bounds if not b.type.is_integral]
        numbers = (b for b in bounds if b.type.is_integral and self.is_ordered(scan.relation, b.column))
        closed = [b for b in times if b.is_closed] or self._by_staged(scan, met, asked)
        return (*(closed or times), *numbers)

    def _by_staged(self, scan: Scan, met: list[tuple[Way, PlacedRead]], asked: Sources) -> list[TimeBound]:
        """The bounds of times by staged keys, of columns in whose order rows lie."""
        found = (_bound(n, t, met, asked) for n, t in scan.columns if kind_of(t) is not None)
        closed = (b for b in found if b is not None and b.is_closed)
        return [b for b in closed if self.is_ordered(scan.relation, b.column)]


def times_read(terms: tuple[Term, ...], key_sets: tuple[KeySet, ...]) -> Iterator[Near]:
    """The changes by whose times something is bounded."""
    for node in (*(t.node for t in terms), *(k.node for k in key_sets)):
        yield from (near for read in reads(node) for bound in read.times for near in bound.near)


def _all_nodes(root: Node, staged: Mapping[str, Node]) -> Iterator[Node]:
    for node in root.walk():
        yield node
        if isinstance(node, Scan) and node.side is Side.DELTA and node.relation in staged:
            yield from _all_nodes(staged[node.relation], staged)


def _is_change_with_time(node: Node) -> bool:
    return (
        isinstance(node, Scan)
        and node.side is Side.DELTA
        and any(_may_bound(type_) for _, type_ in node.columns)
    )


def _may_bound(type_: SparkType) -> bool:
    return type_.is_integral or kind_of(type_) is not None


def _bound(
    name: str, type_: SparkType, met: list[tuple[Way, PlacedRead]], sources: Sources
) -> TimeBound | None:
    """The bound of a column that holds in all ways; None where one of them has none."""
    near: list[Near] = []
    may_be_null = False
    for way, read in met:
        variable, _ = read.columns[read.scan.alias, name]
        found = _nearest(variable, way, sources)
        if found is None:
            return None
        near.append(found[0])
        may_be_null |= found[1]
    return TimeBound(name, type_, tuple(dict.fromkeys(near)), may_be_null)


def _nearest(variable: int, way: Way, sources: Sources) -> tuple[Near, bool] | None:
    """The change to which the distance is known best, and whether NULL is not ruled out."""
    above, below = way.most(variable), way.least(variable)
    best: tuple[tuple[bool, bool, int], Near, bool] | None = None
    for read in way.reads:
        if read.scan.side is not Side.DELTA:
            continue
        for (_, column), (changed, type_) in read.columns.items():
            source = sources.find(read.scan.relation, column)
            high, low = above.get(changed), below.get(changed)
            if source is None or (high is None and low is None):
                continue
            near = Near(
                source[0],
                source[1],
                type_,
                -low[0].most if low is not None else None,
                high[0].most if high is not None else None,
            )
            width = (high[0].most if high else 0) + (low[0].most if low else 0)
            rank = (not near.is_closed, source[0] in sources.staged, width)
            is_strict = any(end is not None and end[1] for end in (high, low))
            if best is None or rank < best[0]:
                best = (rank, near, not is_strict)
    return None if best is None else best[1:]
