"""The search finds a variable order: the canonical one where the query has one, else the cheapest by estimate.

The cost of an order is what its view tree keeps and what changes meet on their way to the root: rows, and more for
those with many numbers, as a covariance of forty variables has them where all relations are joined. Every order of the
variables that relations share is tried where there are few, with equal parts computed once; with many, variables of
more relations go first. The result is a function of query, updates and statistics alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from fivm_dbt.viewtree.choice import costs
from fivm_dbt.viewtree.classes import canonical_order
from fivm_dbt.viewtree.hypergraph import FunctionalDependency, Hypergraph
from fivm_dbt.viewtree.statistics import Statistics
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder, chain

PASSING = 0.01
"""Cost of a row that a change may pass through, where a row that it may meet costs 1."""

NARROW = 16
"""Up to so many numbers in its payload a row costs what one without any does."""

EXHAUSTIVE = 9
"""Up to so many shared variables all orders are compared."""


def find_order(
    graph: Hypergraph,
    updatable: Collection[str],
    statistics: Statistics | None = None,
    dependencies: Collection[FunctionalDependency] = (),
    *,
    is_free_top: bool = False,
    numbers: Callable[[Sequence[str]], int] = lambda _: 1,
) -> VariableOrder:
    """The order to build a view tree on, for changes of the relations ``updatable``.

    With ``is_free_top`` no bound variable stands above a free one. ``numbers`` tells how many a payload of some
    relations has.
    """
    canonical = canonical_order(graph, dependencies)
    if canonical is not None and not (is_free_top and canonical.misplaced(graph.free)):
        return canonical
    return _Search(graph, frozenset(updatable), statistics or Statistics(), numbers, is_free_top).order()


@dataclass(frozen=True)
class _Found:
    cost: float
    nodes: tuple[OrderNode, ...]


@dataclass
class _Search:
    graph: Hypergraph
    updatable: frozenset[str]
    statistics: Statistics
    numbers: Callable[[Sequence[str]], int]
    is_free_top: bool = False
    memo: dict[tuple[tuple[str, ...], frozenset[str]], _Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shared = [v for v in self.graph.variables if len(self.graph.edges_of[v]) > 1]
        self.weight = self.statistics.weight(self.updatable) or 1.0

    def order(self) -> VariableOrder:
        nodes: list[OrderNode] = []
        every = tuple(e.name for e in self.graph.edges)
        for part in self.graph.components(every, frozenset()):
            nodes += self._best(part, frozenset()).nodes
        return VariableOrder(tuple(nodes))

    def _best(self, part: tuple[str, ...], above: frozenset[str]) -> _Found:
        """The cheapest order of a connected part, given the variables ``above`` that it shares with others."""
        schema = self.graph.schema(part)
        context = above & schema
        known = self.memo.get((part, context))
        if known is None:
            known = self.memo[(part, context)] = self._cheapest(part, context)
        return known

    def _cheapest(self, part: tuple[str, ...], context: frozenset[str]) -> _Found:
        schema = self.graph.schema(part)
        # A variable that only one relation of the part has, or that a relation alone is left with, is its own matter.
        joining = [
            v for v in self.shared if v in schema - context and len(self.graph.edges_of[v] & set(part)) > 1
        ]
        if not joining:
            own = [v for v in self.graph.variables if v in schema - context]
            if self.is_free_top:
                own.sort(key=lambda v: v not in self.graph.free)
            return _Found(self._size(part, context), chain(tuple(own)))
        free = (schema - context) & self.graph.free
        if self.is_free_top and free:
            joining = [v for v in joining if v in free] or [v for v in self.graph.variables if v in free]
        if len(joining) > EXHAUSTIVE:
            joining = [max(joining, key=lambda v: len(self.graph.edges_of[v] & set(part)))]
        return min((self._with_root(v, part, context) for v in joining), key=lambda f: f.cost)

    def _with_root(self, variable: str, part: tuple[str, ...], context: frozenset[str]) -> _Found:
        bound = context | {variable}
        below = [(p, self._best(p, bound)) for p in self.graph.components(part, bound)]
        cost = self._size(part, context) + sum(found.cost for _, found in below)
        nodes = tuple(node for _, found in below for node in found.nodes)
        if len(below) > 1:
            cost += sum(self._met(p, part, bound) for p, _ in below)
        return _Found(cost, (OrderNode(variable, nodes),))

    def _size(self, part: tuple[str, ...], context: frozenset[str]) -> float:
        """What changes cost on their way through the view of a part: they are a small part of its rows."""
        changing = set(part) & self.updatable
        if len(part) == 1 or not changing:
            return 0.0
        rows = self.statistics.groups(self.graph, part, context | self.graph.kept_of(part))
        return PASSING * self._share(changing) * rows * self._width(part)

    def _met(self, part: tuple[str, ...], whole: tuple[str, ...], bound: frozenset[str]) -> float:
        """Rows that changes of its siblings can meet in the view of a part."""
        beside = (set(whole) - set(part)) & self.updatable
        if not beside:
            return 0.0
        keys = (bound & self.graph.schema(part)) | self.graph.kept_of(part)
        rows = self.statistics.groups(self.graph, part, keys)
        if not self.statistics.rows:
            return rows * self._width(part)
        # With sizes there is a choice whether the view is kept.
        inputs = float(sum(self.statistics.rows_of(name) for name in part))
        read, kept = costs(
            self.graph,
            self.statistics,
            relations=part,
            keys=keys,
            siblings=beside,
            updatable=self.updatable,
            without=inputs,
        )
        return (read if len(part) == 1 else min(read, kept)) * self._width(part) / self.weight

    def _width(self, part: tuple[str, ...]) -> float:
        """How much more a row of a view of these relations costs than one of a few numbers."""
        return max(1.0, self.numbers(part) / NARROW)

    def _share(self, names: set[str]) -> float:
        """How likely it is one of ``names`` that changes; 1 of any where no sizes are known."""
        return self.statistics.weight(names) / self.weight if self.statistics.rows else 1.0
