"""A subquery sees columns of the query around it, and a reference to one becomes a column inside.

A subquery in an expression is lowered to a relation that is joined to the one around it. Where it names a column of the
outer relation L, it is computed for each different value of those columns: ``D = δ(π_c(L))``, the *domain* of the
correlation, is joined into the subquery, and the result is joined back on D. This unnests every correlation, also by
inequality (after Neumann and Kemper, "Unnesting Arbitrary Queries", BTW 2015). Where a subquery only tests existence
and selects plain rows, its condition can name the outer columns directly, and no domain is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Filter, Join, Map
from fivm_dbt.ir.one_sided import OuterJoin
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast
from fivm_dbt.naming import PREFIX

CARRIED = f"{PREFIX}outer_"
"""How the columns of a domain are called."""

Resolve = Callable[[exp.Column], exp.Expr | None]


class NeedsDomain(Exception):
    """A query nested deeper names a column that is two levels out: only a domain can carry it there."""


@dataclass
class Outer:
    """The query around a subquery: its names, and the columns that the subquery turned out to need.

    With ``domain`` set a reference becomes a column of it; without, it stays the outer column. ``inside`` has the
    domain's columns that are equal to something in the subquery, by which they are computed instead; ``asked`` is
    what was referred to.
    """

    resolve: Resolve
    types: dict[ColumnId, SparkType]
    domain: str | None = None
    captured: dict[ColumnId, str] = field(default_factory=dict)
    inside: dict[str, Scalar] = field(default_factory=dict)
    asked: dict[ColumnId, None] = field(default_factory=dict)

    def reference(self, column: exp.Column) -> exp.Expr | None:
        """The expression for an outer column, None where there is no such column."""
        found = self.resolve(column)
        if found is None or self.domain is None:
            return found

        def inside(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            self.asked[(part.table, part.name)] = None
            name = self.captured.setdefault((part.table, part.name), f"{CARRIED}{len(self.captured) + 1}")
            return self.column(name)

        return found.transform(inside)

    def column(self, name: str) -> exp.Expr:
        """A column of the domain as it is computed in the subquery."""
        assert self.domain is not None
        known = self.inside.get(name)
        return known.ast() if known is not None else column_ast(self.domain, name)

    def at(self, inside: dict[str, Scalar]) -> Outer:
        """The same scope for a place in the subquery where the domain's columns are computed by ``inside``."""
        return replace(self, inside=inside)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the domain."""
        assert self.domain is not None
        return tuple(Field(self.domain, name, self.types[c]) for c, name in self.captured.items())

    def domain_of(self, outer: Node, fresh: Callable[[str], str]) -> Node:
        """``δ(π_c(L))`` under the domain's name, over a copy of what L takes the columns from.

        Values that no row of L has do no harm: what is computed for them finds no row to be joined to.
        """
        assert self.domain is not None
        copy, names = renamed(_covering(outer, frozenset(self.captured)), fresh)
        alias = fresh("correlated")
        values = Map(
            copy,
            alias,
            tuple(
                Item(name, moved(Scalar.column(*c), names), self.types[c])
                for c, name in self.captured.items()
            ),
        )
        keys = tuple(Item(i.name, Scalar.column(alias, i.name), i.type) for i in values.items)
        return Aggregate(values, self.domain, keys, ())


def _covering(node: Node, columns: frozenset[ColumnId]) -> Node:
    """The part of ``node`` that has the columns: without left-joined rows and without factors of a mere product."""
    if isinstance(node, OuterJoin) and columns <= node.left.ids:
        return _covering(node.left, columns)
    if isinstance(node, Filter):
        inner = _covering(node.input, columns)
        kept = tuple(p for p in node.predicates if p.columns <= inner.ids)
        return Filter(inner, kept) if kept else inner
    if isinstance(node, Join):
        factors = _reached(node, columns)
        wanted = frozenset(c for f in factors for c in f.ids)
        predicates = tuple(p for p in node.predicates if p.columns <= wanted)
        if len(factors) == 1:
            inner = _covering(factors[0], columns | frozenset(c for p in predicates for c in p.columns))
            return Filter(inner, predicates) if predicates else inner
        return Join(factors, predicates)
    return node


def _reached(node: Join, columns: frozenset[ColumnId]) -> tuple[Node, ...]:
    """The factors that have the columns, and those that predicates connect with them."""
    reached = frozenset(c for f in node.factors for c in f.ids if columns & f.ids)
    while True:
        known = reached
        for predicate in node.predicates:
            if predicate.columns & reached:
                reached |= frozenset(c for f in node.factors for c in f.ids if predicate.columns & f.ids)
        if reached == known:
            return tuple(f for f in node.factors if f.ids & reached)
