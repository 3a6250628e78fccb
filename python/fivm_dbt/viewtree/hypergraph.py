"""A join-aggregate block is a hypergraph: variables are its vertices, the relations that it joins its edges.

A variable is a class of columns that the query's equalities make equal (F-IVM article, section 3). What is kept of it
in a view's key is decided by where it is used: in other relations, in GROUP BY, in a condition or a SUM term over
several relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Edge:
    """An occurrence of a relation in the query, under a name of its own, with the variables in its schema."""

    name: str
    variables: tuple[str, ...]

    # What a relation says of itself where a view may stand in its place.

    @property
    def relations(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.variables

    @property
    def moved_by(self) -> frozenset[str]:
        return frozenset((self.name,))


@dataclass(frozen=True)
class Hypergraph:
    """The relations of a block, its free variables, and the variables that have to meet.

    ``together`` has a set for each condition or SUM term that cannot be computed within one relation: its variables
    stay in the keys of views until one view has them all.
    """

    edges: tuple[Edge, ...]
    free: frozenset[str] = frozenset()
    together: tuple[frozenset[str], ...] = ()

    def __post_init__(self) -> None:
        names = [e.name for e in self.edges]
        if len(names) != len(set(names)):
            raise ValueError(f"two edges of one name among {names}")
        unknown = frozenset[str]().union(self.free, *self.together) - set(self.variables)
        if unknown:
            raise ValueError(f"{sorted(unknown)} are in no relation")

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All variables, in the order of their first occurrence."""
        return tuple(dict.fromkeys(v for e in self.edges for v in e.variables))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(e.name for e in self.edges)

    def edge(self, name: str) -> Edge:
        return next(e for e in self.edges if e.name == name)

    @cached_property
    def edges_of(self) -> dict[str, frozenset[str]]:
        """The names of the relations that have a variable in their schema: rels(X) of the article."""
        found: dict[str, set[str]] = {v: set() for v in self.variables}
        for edge in self.edges:
            for variable in edge.variables:
                found[variable].add(edge.name)
        return {variable: frozenset(names) for variable, names in found.items()}

    def schema(self, names: Iterable[str]) -> frozenset[str]:
        """The variables of some relations."""
        wanted = set(names)
        return frozenset(v for e in self.edges if e.name in wanted for v in e.variables)

    def kept_of(self, names: Iterable[str]) -> frozenset[str]:
        """What a join of some relations has to keep whatever else is marginalised: free, or waiting for others."""
        schema = self.schema(names)
        waiting = frozenset[str]().union(*(t for t in self.together if not t <= schema))
        return schema & (self.free | waiting)

    def components(self, names: Iterable[str], bound: frozenset[str]) -> Iterator[tuple[str, ...]]:
        """The parts of some relations that hang together once the variables ``bound`` have values.

        (DBToaster, section 3.2: join graph decomposition.)
        """
        parts: list[tuple[set[str], set[str]]] = []
        wanted = set(names)
        for edge in self.edges:
            if edge.name not in wanted:
                continue
            members, schema = {edge.name}, set(edge.variables) - bound
            touching = [p for p in parts if p[1] & schema]
            for other in touching:
                members |= other[0]
                schema |= other[1]
                parts.remove(other)
            parts.append((members, schema))
        order = {e.name: i for i, e in enumerate(self.edges)}
        for members, _ in sorted(parts, key=lambda p: min(order[m] for m in p[0])):
            yield tuple(sorted(members, key=order.__getitem__))

    def closed(self, dependencies: Iterable[FunctionalDependency]) -> Hypergraph:
        """The Σ-reduct: every schema extended by what it determines (F-IVM article, section 7.3)."""
        known = tuple(dependencies)
        edges = tuple(
            Edge(e.name, tuple(sorted(closure(e.variables, known), key=self._position))) for e in self.edges
        )
        return Hypergraph(edges, closure(self.free, known) & frozenset(self.variables), self.together)

    def _position(self, variable: str) -> int:
        return self.variables.index(variable)


def cyclic_core(schemas: Sequence[frozenset[str]]) -> tuple[int, ...]:
    """The positions of the schemas that are left when no more can go: none where the hypergraph is acyclic.

    A schema goes when another covers all that it shares with the rest; of equal ones the later. (GYO reduction.)

    >>> cyclic_core([frozenset("ab"), frozenset("bc"), frozenset("ca"), frozenset("cd")])
    (0, 1, 2)
    """
    left = dict(enumerate(schemas))
    while True:
        ear = next((i for i in reversed(left) if _is_ear(left[i], [left[j] for j in left if j != i])), None)
        if ear is None:
            return tuple(left)
        del left[ear]


def _is_ear(schema: frozenset[str], others: list[frozenset[str]]) -> bool:
    shared = schema & frozenset[str]().union(*others)
    return not shared or any(shared <= other for other in others)


@dataclass(frozen=True)
class FunctionalDependency:
    """``determinant → dependent``: rows that agree on the one agree on the other."""

    determinant: frozenset[str]
    dependent: frozenset[str]


def closure(variables: Iterable[str], dependencies: Iterable[FunctionalDependency]) -> frozenset[str]:
    """All variables that ``variables`` determine.

    >>> d = FunctionalDependency
    >>> sorted(closure("A", [d(frozenset("A"), frozenset("D")), d(frozenset("D"), frozenset("E"))]))
    ['A', 'D', 'E']
    """
    known = tuple(dependencies)
    found = frozenset(variables)
    while True:
        more = found.union(*(d.dependent for d in known if d.determinant <= found))
        if more == found:
            return found
        found = more
