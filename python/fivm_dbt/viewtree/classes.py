"""Join queries have classes, and a q-hierarchical one has an order by its very shape.

(F-IVM article, sections 7.1 to 7.3, definitions 4 and 5.)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fivm_dbt.viewtree.hypergraph import Edge, FunctionalDependency, Hypergraph, cyclic_core
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder


def is_hierarchical(graph: Hypergraph) -> bool:
    """Whether for any two variables the sets of relations that have them are disjoint or one is in the other."""
    sets = list(dict.fromkeys(graph.edges_of.values()))
    return all(a <= b or b <= a or not a & b for i, a in enumerate(sets) for b in sets[:i])


def is_q_hierarchical(graph: Hypergraph) -> bool:
    """Hierarchical, and no bound variable is in more relations than a free one is, among the same ones.

    Then a change of one row costs constant time, and the rows of the result are listed with constant delay.
    """
    if not is_hierarchical(graph):
        return False
    of = graph.edges_of
    bound = [v for v in graph.variables if v not in graph.free]
    return not any(of[x] > of[y] for x in bound for y in graph.free)


def is_acyclic(graph: Hypergraph) -> bool:
    """Whether the hypergraph reduces to nothing."""
    return not cyclic_core([frozenset(e.variables) for e in graph.edges])


def is_free_connex(graph: Hypergraph) -> bool:
    """Acyclic, also with one more relation of just the free variables."""
    with_free = Hypergraph((*graph.edges, Edge("\0free", tuple(sorted(graph.free)))))
    return is_acyclic(graph) and is_acyclic(with_free)


def class_of(graph: Hypergraph) -> str:
    """The strongest classes that a query is in, for people.

    >>> class_of(Hypergraph((Edge("R", ("a", "b")), Edge("S", ("b", "c")), Edge("T", ("c", "a")))))
    'cyclic'
    """
    if not is_acyclic(graph):
        return "cyclic"
    if is_q_hierarchical(graph):
        return "q-hierarchical"
    found = ["hierarchical"] if is_hierarchical(graph) else []
    found += ["free-connex"] if is_free_connex(graph) else ["acyclic"]
    return ", ".join(found)


def canonical_order(
    graph: Hypergraph, dependencies: Collection[FunctionalDependency] = ()
) -> VariableOrder | None:
    """The free-top order of a query that is q-hierarchical, maybe only under its functional dependencies; else None.

    Each relation's path is its (extended) schema, variables of more relations above those of fewer, and free ones
    above bound ones of the same relations.
    """
    reduct = graph.closed(dependencies)
    if not is_q_hierarchical(reduct):
        return None
    position = {v: i for i, v in enumerate(graph.variables)}
    of = reduct.edges_of

    def before(variable: str) -> tuple[int, bool, int]:
        return (-len(of[variable]), variable not in reduct.free, position[variable])

    return VariableOrder(_merged([sorted(edge.variables, key=before) for edge in reduct.edges]))


def _merged(paths: Sequence[Sequence[str]]) -> tuple[OrderNode, ...]:
    """The forest of paths from its roots: those that begin alike share what they begin with."""
    below: dict[str, list[Sequence[str]]] = {}
    for path in paths:
        if path:
            below.setdefault(path[0], []).append(path[1:])
    return tuple(OrderNode(variable, _merged(rest)) for variable, rest in below.items())
