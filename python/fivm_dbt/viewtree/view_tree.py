"""A view tree has a view per variable of an order, over the views below; some of them are kept.

The functions τ and μ of the F-IVM article (sections 4 and 5, figures 4 and 8), with chains of single children collapsed
(thesis, section 4.9.1) and keys that hold what conditions and SUM terms still need. Views within a cycle of the query
are restricted by indicator projections of the relations that close it (article, section 7, remark on cyclic queries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph, cyclic_core
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder


@dataclass(frozen=True)
class Indicator:
    """``∃R[variables]``: 1 where a relation has rows with these values, however many, and 0 elsewhere."""

    relation: str
    variables: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """``V@X[keys] = Σ over what is no key of the product of the children and the indicators``.

    ``variables`` is the chain of variables at which it stands, the topmost first; none where a view joins independent
    trees. ``relations`` are those below it. ``keys`` stand in the sequence of the order.
    """

    variables: tuple[str, ...]
    relations: tuple[str, ...]
    keys: tuple[str, ...]
    children: tuple[View | Edge, ...]
    indicators: tuple[Indicator, ...] = ()

    @property
    def moved_by(self) -> frozenset[str]:
        """The relations whose changes may change it."""
        below = frozenset(n for v in self.views for n in v.moved_by)
        return below | {*self.relations, *(i.relation for i in self.indicators)}

    @property
    def views(self) -> tuple[View, ...]:
        """The children that are views."""
        return tuple(c for c in self.children if isinstance(c, View))

    def walk(self) -> Iterator[View]:
        """All views of the tree, children first and the root last: the sequence in which they are refreshed."""
        for child in self.views:
            yield from child.walk()
        yield self

    def __str__(self) -> str:
        at = self.variables[0] if self.variables else "∅"
        return f"V@{at}[{', '.join(self.keys)}] over {', '.join(self.relations)}"


def view_tree(graph: Hypergraph, order: VariableOrder) -> View:
    """τ: the view tree of a query over a variable order. The order is checked (FIVM204).

    ``keys(V@X) = dep(X) ∪ free variables below ∪ variables below that a condition or SUM term waits with``.
    """
    order.check(graph)
    return TreeBuilder(graph, order).tree()


@dataclass
class TreeBuilder:
    """Builds the views of an order that fits; ``leaves`` are the relations that hang below a variable."""

    graph: Hypergraph
    order: VariableOrder

    def __post_init__(self) -> None:
        self.dependencies = self.order.dependencies(self.graph)
        self.position = {v: i for i, v in enumerate(self.order.variables)}
        self.leaves: dict[str | None, list[Edge]] = {}
        for edge in self.graph.edges:
            self.leaves.setdefault(self.order.lowest(edge), []).append(edge)

    def tree(self) -> View:
        children: list[View | Edge] = [self.view(root) for root in self.order.roots]
        children += self.leaves.get(None, [])
        if len(children) == 1 and isinstance(children[0], View):
            return children[0]
        return self._made((), (), tuple(children))

    def view(self, node: OrderNode) -> View:
        """The view at the variable of ``node``, or at the chain of variables that it begins."""
        children: list[View | Edge] = [self.view(child) for child in node.children]
        children += self.leaves.get(node.variable, [])
        dependencies = self.dependencies[node.variable]
        only = children[0] if len(children) == 1 else None
        if isinstance(only, View):
            return self._made((node.variable, *only.variables), dependencies, only.children)
        return self._made((node.variable,), dependencies, tuple(children))

    def _made(
        self, variables: tuple[str, ...], dependencies: tuple[str, ...], children: tuple[View | Edge, ...]
    ) -> View:
        relations = self.relations_of(children)
        keys = self.in_order(self.graph.kept_of(relations) | set(dependencies))
        return View(variables, relations, keys, children, self._indicators(children, relations))

    def relations_of(self, children: tuple[View | Edge, ...]) -> tuple[str, ...]:
        """The relations below, in the sequence of the query."""
        below = {name for child in children for name in child.relations}
        return tuple(e.name for e in self.graph.edges if e.name in below)

    def in_order(self, keys: Collection[str]) -> tuple[str, ...]:
        """Keys in the sequence of the order."""
        return tuple(sorted(keys, key=self.position.__getitem__))

    def _indicators(
        self, children: tuple[View | Edge, ...], relations: tuple[str, ...]
    ) -> tuple[Indicator, ...]:
        """What the relations elsewhere restrict: those that close a cycle with the children (GYO)."""
        schemas = [frozenset(c.keys) for c in children]
        here = frozenset[str]().union(*schemas)
        outside = [
            Indicator(e.name, tuple(v for v in e.variables if v in here))
            for e in self.graph.edges
            if e.name not in relations
        ]
        core = cyclic_core([*schemas, *(frozenset(i.variables) for i in outside)])
        return tuple(outside[i - len(children)] for i in core if i >= len(children))


def materialised(tree: View, updatable: Collection[str]) -> tuple[View, ...]:
    """μ: the views to keep so that every delta meets kept siblings, the root last.

    ``V is kept ⇔ V is the root, or beside(V) ∩ updatable ≠ ∅``.
    """
    kept: list[View] = []

    def visit(view: View, parent: View | None) -> None:
        for child in view.views:
            visit(child, view)
        if parent is None or beside(view, parent) & set(updatable):
            kept.append(view)

    visit(tree, None)
    return tuple(kept)


def looked_up(tree: View, updatable: Collection[str]) -> tuple[Edge, ...]:
    """The relations that deltas meet as they are, because they hang beside something that changes."""
    found = []
    for view in tree.walk():
        for child in view.children:
            if isinstance(child, Edge) and beside(child, view) & set(updatable):
                found.append(child)
    return tuple(found)


def delta_path(tree: View, relation: str) -> tuple[View, ...]:
    """The views that change with a relation, from its leaf to the root (article, figure 7)."""
    return tuple(view for view in tree.walk() if relation in view.moved_by)


def beside(child: View | Edge, parent: View) -> frozenset[str]:
    """The relations whose deltas meet a child of a view: those of its siblings, and of indicators there."""
    siblings = (c for c in parent.children if c is not child)
    found = {name for c in siblings for name in c.moved_by}
    return frozenset(found | {i.relation for i in parent.indicators})
