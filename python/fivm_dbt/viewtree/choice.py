"""Which candidates of a view tree pay: what deltas would read without a view, against what keeping it costs.

The papers keep every sibling of a delta path in memory, by an index. Here a view is a table: keeping it up to date is
a staged delta and a MERGE, seconds that do not depend on how little has changed, while Spark reads some million rows
a second. A copy of an input saves no row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.statistics import Statistics
from fivm_dbt.viewtree.view_tree import View, looked_up, materialised

UPKEEP = 2_000_000
"""Rows that Spark reads in the time that one more view takes in a refresh that changes it, on two cores."""

COPY = 0.5
"""A view of one relation with more than this share of its rows is taken for a copy."""

LOOKED_UP = 0.1
"""Share of a view that a small change is taken to look up."""


@dataclass(frozen=True)
class Choice:
    """Whether a candidate is kept, and why, for people."""

    is_kept: bool
    reason: str


def choose(
    graph: Hypergraph, tree: View, updatable: Collection[str], statistics: Statistics
) -> dict[View | Edge, Choice]:
    """A choice for each candidate below the root: what :func:`materialised` and :func:`looked_up` have.

    ``V`` is kept if what :func:`costs` says of keeping it is less.
    """
    candidates: list[View | Edge] = [v for v in materialised(tree, updatable) if v is not tree]
    candidates += looked_up(tree, updatable)
    parents: dict[View | Edge, View] = {child: view for view in tree.walk() for child in view.children}
    changing = set(updatable)
    return {c: _choice(graph, c, parents[c], changing, statistics) for c in candidates}


def _choice(
    graph: Hypergraph, candidate: View | Edge, parent: View, updatable: set[str], statistics: Statistics
) -> Choice:
    relations = candidate.relations if isinstance(candidate, View) else (candidate.name,)
    keys = candidate.keys if isinstance(candidate, View) else _keys_of_leaf(graph, candidate)
    rows = statistics.groups(graph, relations, keys)
    below = sum(statistics.rows_of(name) for name in relations)
    if len(relations) == 1 and rows > COPY * below:
        return Choice(False, f"a copy of {relations[0]}: {_shown(rows)} of its {_shown(below)} rows")
    siblings = sorted((set(parent.relations) - set(relations)) & updatable)
    read, kept = costs(statistics, siblings, updatable & set(relations), below, rows)
    what = f"{_shown(rows)} rows for {_shown(below)} that deltas of {', '.join(siblings)} would read"
    if kept < read:
        return Choice(True, what)
    return Choice(False, f"{what}: fewer than its upkeep is worth")


def costs(
    statistics: Statistics, beside: Collection[str], below: Collection[str], inputs: float, rows: float
) -> tuple[float, float]:
    """What refreshes cost without a view ``V`` and with it, in rows read times how likely they are.

    ``w(beside V) × rows of its inputs`` against ``w(beside V) × looked-up share of V + w(below V) × UPKEEP``, where
    ``w`` is how likely one of the updatable relations beside or below it is to be what changed.
    """
    meets = statistics.weight(beside)
    return meets * inputs, meets * LOOKED_UP * rows + statistics.weight(below) * UPKEEP


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
