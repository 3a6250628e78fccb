"""A variable order is a forest of the query's variables: each relation lies on one path from a root.

An order says in which sequence variables are joined on and marginalised (F-IVM article, section 4; thesis, 2.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.errors import FivmError
from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph


@dataclass(frozen=True)
class OrderNode:
    """A variable and the orders below it, which are independent of each other once it and its ancestors have values."""

    variable: str
    children: tuple[OrderNode, ...] = ()

    def walk(self) -> Iterator[OrderNode]:
        """The node and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        if not self.children:
            return self.variable
        if len(self.children) == 1:
            return f"{self.variable} – {self.children[0]}"
        return f"{self.variable} – {{{', '.join(map(str, self.children))}}}"


@dataclass(frozen=True)
class VariableOrder:
    """A forest of variables.

    >>> str(VariableOrder((OrderNode("A", (OrderNode("B"), OrderNode("C", (OrderNode("D"),)))),)))
    'A – {B, C – D}'
    """

    roots: tuple[OrderNode, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.roots))

    def walk(self) -> Iterator[OrderNode]:
        for root in self.roots:
            yield from root.walk()

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Every variable once, parents before children, in the order as it is written."""
        return tuple(node.variable for node in self.walk())

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """For each variable the way to it from its root, itself included."""
        found: dict[str, tuple[str, ...]] = {}

        def visit(node: OrderNode, above: tuple[str, ...]) -> None:
            found[node.variable] = (*above, node.variable)
            for child in node.children:
                visit(child, found[node.variable])

        for root in self.roots:
            visit(root, ())
        return found

    def renamed(self, names: Mapping[str, str | None]) -> VariableOrder:
        """The order under other names. A variable that becomes None is left out, those below it move up."""

        def nodes(below: tuple[OrderNode, ...]) -> Iterator[OrderNode]:
            for node in below:
                name = names.get(node.variable, node.variable)
                if name is None:
                    yield from nodes(node.children)
                else:
                    yield OrderNode(name, tuple(nodes(node.children)))

        return VariableOrder(tuple(nodes(self.roots)))

    def lowest(self, edge: Edge) -> str | None:
        """The lowest variable of a relation, where it hangs in the order; None of a relation without variables."""
        return max(edge.variables, key=lambda v: len(self.paths[v]), default=None)

    def check(self, graph: Hypergraph) -> None:
        """FIVM204 unless this is an order of exactly the query's variables, with each relation on one path.

        The message names the variable or the relation at fault.
        """
        remedy = "correct the order, or leave it out: one is found then"
        seen: set[str] = set()
        for variable in self.variables:
            if variable in seen:
                raise FivmError("FIVM204", f"{variable} stands in the order twice", remedy=remedy)
            seen.add(variable)
        known = set(graph.variables)
        for variable in self.variables:
            if variable not in known:
                there = ", ".join(graph.variables)
                raise FivmError(
                    "FIVM204", f"{variable} is no variable of the query, which has {there}", remedy=remedy
                )
        for edge in graph.edges:
            missing = [v for v in edge.variables if v not in seen]
            if missing:
                raise FivmError(
                    "FIVM204", f"{', '.join(missing)} of {edge.name} is missing in the order", remedy=remedy
                )
            self._check_path(edge, remedy)

    def _check_path(self, edge: Edge, remedy: str) -> None:
        lowest = self.lowest(edge)
        if lowest is None:
            return
        path = self.paths[lowest]
        astray = [v for v in edge.variables if v not in path]
        if astray:
            raise FivmError(
                "FIVM204",
                f"{edge.name} has {astray[0]} and {lowest}, which stand on different branches: "
                f"{' – '.join(self.paths[astray[0]])} and {' – '.join(path)}",
                remedy=remedy,
            )

    def misplaced(self, free: Collection[str]) -> tuple[str, str] | None:
        """A bound variable and a free one below it; None in a free-top order."""
        for variable in self.variables:
            bound = [v for v in self.paths[variable] if v not in free]
            if variable in free and bound:
                return bound[0], variable
        return None

    def dependencies(self, graph: Hypergraph) -> dict[str, tuple[str, ...]]:
        """``dep(X)``: the ancestors of X that occur in a relation together with X or with a variable below X."""
        below: dict[str, set[str]] = {v: set() for v in self.variables}
        for edge in graph.edges:
            for variable in edge.variables:
                for above in self.paths[variable]:
                    below[above].update(edge.variables)
        return {v: tuple(a for a in self.paths[v][:-1] if a in below[v]) for v in self.variables}


def chain(variables: tuple[str, ...], below: tuple[OrderNode, ...] = ()) -> tuple[OrderNode, ...]:
    """``below`` under a path of ``variables``; ``below`` itself where there are none."""
    for variable in reversed(variables):
        below = (OrderNode(variable, below),)
    return below
