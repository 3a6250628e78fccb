"""Candidates of a view tree pay if deltas would read more without a view than the view costs.

The papers keep every sibling of a delta path in memory, by an index. Here a view is a table without one: keeping it up
to date is a staged delta and a MERGE that writes the touched partitions anew, and looking it up reads them. Where
nothing but a hash tells the partitions apart a change of some hundred keys touches all. A view pays where it has far
fewer rows than its inputs, where changes lie in few of its periods, or where nothing below it changes. A copy saves no
row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.statistics import WRITTEN, Statistics
from fivm_dbt.viewtree.view_tree import View, beside, looked_up, materialised

UPKEEP, WRITING = WRITTEN.view, WRITTEN.row
"""Of views whose partitions are written (:class:`Upkeep`)."""

COPY = 0.5
"""A view of one relation with more than this share of its rows is taken for a copy."""


SAVES = 0.8
"""A view costs at most so much of what refreshes cost without it. Sizes are estimates, and it has to be built too."""


@dataclass(frozen=True)
class Choice:
    """Whether a candidate is kept, and why, for people."""

    is_kept: bool
    reason: str


def choose(
    graph: Hypergraph, tree: View, updatable: Collection[str], statistics: Statistics
) -> dict[View | Edge, Choice]:
    """A choice for each candidate below the root: what :func:`materialised` and :func:`looked_up` have.

    ``V`` is kept if what :func:`costs` says of keeping it is less, by a fifth if it can change. Views below are chosen
    first: what is kept of them is what would be read without ``V``.
    """
    chooser = _Chooser(graph, statistics, frozenset(updatable))
    candidates: set[View | Edge] = {v for v in materialised(tree, updatable) if v is not tree}
    chooser.below(tree, candidates | set(looked_up(tree, updatable)))
    return chooser.choices


@dataclass
class _Chooser:
    graph: Hypergraph
    statistics: Statistics
    updatable: frozenset[str]
    choices: dict[View | Edge, Choice] = field(default_factory=dict)

    def below(self, view: View, candidates: set[View | Edge]) -> float:
        """The rows to be read for the children of a view, about which it is decided on the way."""
        return sum(self._read(child, view, candidates) for child in view.children)

    def _read(self, node: View | Edge, parent: View, candidates: set[View | Edge]) -> float:
        if isinstance(node, View):
            relations, keys, without = node.relations, node.keys, self.below(node, candidates)
        else:
            relations, keys = (node.name,), _keys_of_leaf(self.graph, node)
            without = float(self.statistics.rows_of(node.name))
        if node not in candidates:
            return without
        rows = self.statistics.groups(self.graph, relations, keys)
        if isinstance(node, View):
            # An indicator of all keys has a row for each that can be there.
            covering = (i.relation for i in node.indicators if set(keys) <= set(i.variables))
            rows = min([rows, *(float(self.statistics.rows_of(name)) for name in covering)])
        self.choices[node] = self._choice(
            node, relations, keys=keys, parent=parent, without=without, rows=rows
        )
        return rows if self.choices[node].is_kept else without

    def _choice(
        self,
        node: View | Edge,
        relations: Collection[str],
        keys: Collection[str],
        parent: View,
        without: float,
        rows: float,
    ) -> Choice:
        if len(relations) == 1 and rows > COPY * without:
            (name,) = relations
            return Choice(False, f"a copy of {name}: {_shown(rows)} of its {_shown(without)} rows")
        siblings = sorted(beside(node, parent) & self.updatable)
        read, kept = costs(
            self.graph,
            self.statistics,
            relations=relations,
            keys=keys,
            siblings=siblings,
            updatable=self.updatable,
            without=without,
            rows=rows,
            moved_by=node.moved_by,
        )
        if not self.statistics.weight(siblings):
            return Choice(False, f"for deltas of {', '.join(siblings)} alone, which have not changed lately")
        what = f"{_shown(rows)} rows for {_shown(without)} that deltas of {', '.join(siblings)} would read"
        if kept < read * (SAVES if self.statistics.weight(node.moved_by & self.updatable) else 1):
            return Choice(True, what)
        return Choice(False, f"{what}: fewer than its upkeep is worth")


def costs(
    graph: Hypergraph,
    statistics: Statistics,
    relations: Collection[str],
    keys: Collection[str],
    siblings: Collection[str],
    updatable: Collection[str],
    without: float,
    rows: float | None = None,
    moved_by: Collection[str] | None = None,
) -> tuple[float, float]:
    """What refreshes cost without a view ``V`` and with it, in rows read times how likely they are.

    ``w(beside V) × rows read without it`` against
    ``w(beside V) × rows of V looked up + w(below V) × (view + row × rows of V in touched partitions)``, where ``view``
    and ``row`` are the upkeep that the statistics tell, and ``w`` is how likely one of the updatable relations beside
    or below it is to be what changed. ``rows`` of V are the estimated ones where nothing more is known, ``moved_by``
    its own relations.
    """
    if rows is None:
        rows = statistics.groups(graph, relations, keys)
    meets = statistics.weight(siblings)
    moves = statistics.weight(set(relations if moved_by is None else moved_by) & set(updatable))
    joined = [key for key in keys if graph.edges_of[key] - set(relations)]
    looked_up, written = statistics.touched(joined) * rows, statistics.touched(keys) * rows
    upkeep = statistics.upkeep
    return meets * without, meets * looked_up + moves * (upkeep.view + upkeep.row * written)


def _keys_of_leaf(graph: Hypergraph, edge: Edge) -> tuple[str, ...]:
    """What a relation that hangs in a tree by itself is grouped by: all that others or the result need of it."""
    needed = graph.kept_of((edge.name,))
    return tuple(v for v in edge.variables if v in needed or len(graph.edges_of[v]) > 1)


def _shown(rows: float) -> str:
    """A number of rows for people.

    >>> _shown(999), _shown(1_500_000.0)
    ('999', '1,500,000')
    """
    return f"{round(rows):,}"
