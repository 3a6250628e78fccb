"""A changed row has a cost in a view tree, relation by relation, and a query's class implies bounds.

(F-IVM article, section 7: theorem 1, remark 3 and section 7.3. A delta view is of constant size where what the change
binds determines all columns of the views that it meets.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fivm_dbt.viewtree.hypergraph import Edge, FunctionalDependency, Hypergraph, closure
from fivm_dbt.viewtree.view_tree import View

_CONSTANT_DELAY = "and rows of a factorised result come with constant delay"

IMPLIED = {
    "q-hierarchical": f"an order exists in which a changed row costs constant time, {_CONSTANT_DELAY}",
    "free-connex": f"a changed row costs at most time linear in the inputs, {_CONSTANT_DELAY}",
    "acyclic": "a changed row costs at most time linear in the inputs for a total; with these groups no order gives "
    "both linear time and constant delay",
    "cyclic": "views may be larger than the inputs, and a changed row may cost more than time linear in them",
}
"""By the strongest part of a class: update cost and enumeration delay, in the size of the inputs."""


@dataclass(frozen=True)
class UpdateCost:
    """What a changed row of a relation meets: nothing but single rows where ``met`` is empty.

    ``met`` are the views and relations of which there may be many rows for it, with what these are told apart by.
    """

    relation: str
    met: tuple[tuple[str, tuple[str, ...]], ...]


def implied(query_class: str) -> str:
    """What a class of :func:`fivm_dbt.viewtree.classes.class_of` says about costs."""
    return next(text for name, text in IMPLIED.items() if name in query_class.split(", "))


def update_costs(
    graph: Hypergraph,
    trees: Collection[View],
    updatable: Collection[str],
    dependencies: Collection[FunctionalDependency] = (),
) -> tuple[UpdateCost, ...]:
    """For each updatable relation what one of its rows meets on its way to the root.

    A sibling on the way is met by a single row where the relation's own columns determine all keys of it.
    """
    found = []
    for edge in graph.edges:
        if edge.name in updatable:
            met = (pair for tree in trees for pair in _met(tree, edge, tuple(dependencies)))
            found.append(UpdateCost(edge.name, tuple(dict.fromkeys(met))))
    return tuple(found)


def _met(
    tree: View, edge: Edge, dependencies: tuple[FunctionalDependency, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What has several rows for one of the relation's on its way, from its leaf and from its indicators upwards."""
    for start in tree.walk():
        if edge in start.children or any(i.relation == edge.name for i in start.indicators):
            known, below = closure(edge.variables, dependencies), edge.name
            for view in _path(tree, start):
                for sibling in view.children:
                    if below in sibling.relations or set(sibling.keys) <= known:
                        continue
                    yield _called(sibling), tuple(k for k in sibling.keys if k not in known)
                    # From here on a row of the delta has these too.
                    known = closure(known | set(sibling.keys), dependencies)
                below = view.relations[0]


def _path(tree: View, start: View) -> list[View]:
    """``start`` and the views above it, up to the root of the tree."""
    if tree is start:
        return [start]
    below = next((path for child in tree.views if (path := _path(child, start))), [])
    return [*below, tree] if below else []


def _called(node: View | Edge) -> str:
    if isinstance(node, Edge):
        return node.name
    return f"V@{node.variables[0] if node.variables else '∅'}[{', '.join(node.keys)}]"
