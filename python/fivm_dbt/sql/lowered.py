"""A query that has been lowered is a node with names; CTEs are lowered where they are read."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import Column
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import ColumnId
from fivm_dbt.ir.written import WrittenClause
from fivm_dbt.sql.edits import Edit


@dataclass(frozen=True)
class BoundCte:
    """A CTE with the CTEs that are visible in its body: those before it, so that none can see itself.

    ``captured`` is the correlation of the subquery whose CTE it is.
    """

    cte: exp.CTE
    visible: Ctes
    captured: dict[ColumnId, str] | None = None


Ctes = dict[str, BoundCte]


@dataclass(frozen=True)
class Lowered:
    """A lowered query: its node, whose fields are the query's columns in order.

    ``completions`` are the edits after which its text means just this node, whatever is read first, and ``matches``
    the patterns in that text, which Spark does not know. ``written_out`` are edits that put SQL of Spark in place of
    functions that only fivm knows. :func:`lower` gives them among the completions.
    """

    node: Node
    names: tuple[str, ...]
    completions: tuple[Edit, ...] = ()
    matches: tuple[WrittenClause, ...] = ()
    written_out: tuple[Edit, ...] = ()
    spelled: str | None = None
    """The text in which a covariance with categorical variables is spelled by groups: that is to be lowered instead."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(n, f.type) for n, f in zip(self.names, self.node.fields, strict=True))
