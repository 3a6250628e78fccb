"""A part of a FROM clause: the relations joined so far and the names that they bring into scope."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.ir.nodes import Field, Join, Node
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.sql.scope import Scope, Source


@dataclass(frozen=True)
class Part:
    """Some of the FROM clause: ``outputs`` are its columns in the order of ``*``, USING columns once and first."""

    sources: tuple[Source, ...]
    outputs: tuple[tuple[str, Field], ...]
    factors: tuple[Node, ...]
    predicates: tuple[Scalar, ...] = ()

    @property
    def scope(self) -> Scope:
        return Scope(self.sources, self.outputs)

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
        return Part(sources, tuple((n, meaning.get(f.id, f)) for n, f in self.outputs), (node,))
