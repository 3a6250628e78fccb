"""A part of a FROM clause has the relations joined so far and the names that they bring into scope."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.ir.node import Field, Node
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.sql.outer_scope import Outer
from fivm_dbt.sql.scope import Scope, Source


@dataclass(frozen=True)
class Part:
    """Some of the FROM clause: ``outputs`` are its columns in the order of ``*``, USING columns once and first.

    In a correlated subquery ``carried`` are the columns that have the value of the domain for which a row is, where
    something so far depends on it. ``deferred`` are conditions of inner joins on the outer columns: they are decided
    with WHERE, unless an outer join needs them before.
    """

    sources: tuple[Source, ...]
    outputs: tuple[tuple[str, Field], ...]
    factors: tuple[Node, ...]
    predicates: tuple[Scalar, ...] = ()
    carried: tuple[Field, ...] = ()
    deferred: tuple[exp.Expr, ...] = ()

    @property
    def scope(self) -> Scope:
        return Scope(self.sources, self.outputs)

    def scope_in(self, outer: Outer | None) -> Scope:
        """The names here, and those of the query around, where the part carries the columns that they mean."""
        if outer is None or not self.carried:
            return self.scope
        return replace(
            self.scope,
            outer=outer.at({f.name: c.scalar for f, c in zip(outer.fields, self.carried, strict=True)}),
        )

    @property
    def node(self) -> Node:
        """What is joined so far, as one node."""
        joined = len(self.factors) > 1 or self.predicates
        return Join(self.factors, self.predicates) if joined else self.factors[0]

    def at(self, node: Node, meaning: dict[ColumnId, Field]) -> Part:
        """The same names over another node, where each field is what ``meaning`` says."""
        sources = tuple(
            replace(s, columns=tuple((n, meaning.get(f.id, f)) for n, f in s.columns)) for s in self.sources
        )
        outputs = tuple((n, meaning.get(f.id, f)) for n, f in self.outputs)
        carried = tuple(meaning.get(f.id, f) for f in self.carried)
        return Part(sources, outputs, factors=(node,), predicates=(), carried=carried, deferred=self.deferred)
