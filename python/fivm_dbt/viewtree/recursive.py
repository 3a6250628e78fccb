"""Recursive maintenance keeps a map for each part of each delta, and for the deltas of those.

The delta of a map for one relation joins its change with the connected parts of the rest; each part is kept as a map,
keyed by what joins it, and has deltas itself (DBToaster, sections 3.1 and 3.2). The same map is kept once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fivm_dbt.viewtree.hypergraph import Hypergraph


@dataclass(frozen=True)
class DeltaMap:
    """``Σ`` of the join of ``relations`` by ``keys``. ``depth`` is the number of deltas that lead to it at least."""

    relations: tuple[str, ...]
    keys: tuple[str, ...]
    depth: int

    @property
    def is_input(self) -> bool:
        """Whether it is over one relation alone."""
        return len(self.relations) == 1


def recursive_maps(
    graph: Hypergraph, updatable: Collection[str], depth: int | None = None
) -> tuple[DeltaMap, ...]:
    """All maps of a query, the query itself last; with ``depth`` those that less than so many deltas lead to.

    What deeper maps would answer is computed from base relations: at depth 1 only the query itself is kept, and its
    deltas are joins of inputs (classical maintenance); at depth 0 nothing is.
    """
    found: dict[tuple[tuple[str, ...], frozenset[str]], int] = {}
    every = tuple(e.name for e in graph.edges)
    level = [(every, graph.kept_of(every))]
    distance = 0
    while level and (depth is None or distance < depth):
        below = []
        for relations, keys in level:
            if (relations, keys) in found:
                continue
            found[(relations, keys)] = distance
            changed = [name for name in relations if name in updatable]
            below += [part for name in changed for part in parts(graph, relations, keys, name)]
        level, distance = below, distance + 1
    order = {v: i for i, v in enumerate(graph.variables)}
    maps = [DeltaMap(r, tuple(sorted(k, key=order.__getitem__)), d) for (r, k), d in found.items()]
    return tuple(sorted(maps, key=lambda m: (len(m.relations), -m.depth)))


def parts(
    graph: Hypergraph, relations: tuple[str, ...], keys: frozenset[str], changed: str
) -> list[tuple[tuple[str, ...], frozenset[str]]]:
    """What the change of one relation is joined with: relations and keys of each connected part of the others."""
    bound = frozenset(graph.edge(changed).variables)
    rest = [name for name in relations if name != changed]
    return [
        (part, graph.schema(part) & (bound | keys) | graph.kept_of(part))
        for part in graph.components(rest, bound)
    ]
