"""The FROM clause of one SELECT has relations, and brings their names into scope."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Field, Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.naming import canonical, relation_name
from fivm_dbt.sql.bound_parts import BoundParts
from fivm_dbt.sql.clause_reader import readers
from fivm_dbt.sql.column_names import column_names
from fivm_dbt.sql.generators import lateral_view
from fivm_dbt.sql.joins import Joins, join_kind
from fivm_dbt.sql.lowered import BoundCte, Ctes, Lowered
from fivm_dbt.sql.membership import has_subquery
from fivm_dbt.sql.number_ranges import is_range, number_range
from fivm_dbt.sql.outer_joins import behind_generators
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.pivot import pivoted
from fivm_dbt.sql.scope import Scope, Source
from fivm_dbt.sql.values import one_row, values
from fivm_dbt.suggest import did_you_mean

if TYPE_CHECKING:
    from fivm_dbt.sql.domains import Domain
    from fivm_dbt.sql.lower import Lowering


@dataclass(frozen=True)
class Read:
    """What a SELECT reads: the scope of its expressions, the joined relation, and the conditions of inner joins that
    are decided with WHERE since they name columns of the query around."""

    scope: Scope
    node: Node
    deferred: tuple[exp.Expr, ...] = ()


def from_clause(lowering: Lowering, node: exp.Select, ctes: Ctes, domain: Domain | None) -> Read:
    """What a SELECT reads. Spark reads the clause from left to right; a comma binds as tightly as JOIN."""
    clause = _FromClause(lowering, ctes, domain if domain is not None and domain.node is not None else None)
    if node.args.get("from_") is None:
        part = Part((), (), (one_row(lowering),))
    else:
        part = clause.source(node.args["from_"].this)
    for reader in readers():
        if node.args.get(reader.argument) is not None:
            part = reader.lower(lowering, part, node.args[reader.argument])
    for join in node.args.get("joins") or []:
        part = clause.join(part, join)
    for lateral in node.args.get("laterals") or []:
        part = clause.generated(part, lateral)
    if any(has_subquery(e) for e in (*node.expressions, *_conditions(node))):
        part = behind_generators(lowering, part)
    scope = part.scope_in(domain.outer) if domain is not None else part.scope
    if domain is not None and scope.outer is None:
        scope = replace(scope, outer=domain.outer.at({}))
    return Read(scope, part.node, part.deferred)


def _conditions(node: exp.Select) -> list[exp.Expr]:
    """The clauses of a SELECT besides its list in which subqueries may stand."""
    clauses = [node.args.get(key) for key in ("where", "group", "having", "qualify", "order")]
    return [clause for clause in clauses if clause is not None]


class _FromClause:
    """Reads one FROM clause."""

    def __init__(self, lowering: Lowering, ctes: Ctes, domain: Domain | None) -> None:
        self.parts = BoundParts(lowering, ctes, domain)
        self.joins = Joins(self.parts)

    def join(self, left: Part, join: exp.Join) -> Part:
        if not isinstance(join.this, exp.Lateral):
            return self.joins.join(left, self.source(join.this), join)
        if isinstance(join.this.this, exp.Subquery):
            return self.joins.lateral(left, join)
        return self.generated(left, join.this, outer=join_kind(join) == "left")

    def generated(self, part: Part, lateral: exp.Lateral, *, outer: bool = False) -> Part:
        return self.parts.per_value(
            part, lambda p: lateral_view(self.parts.lowering, p, self.parts.scope(p), lateral, outer=outer)
        )

    def source(self, node: exp.Expr) -> Part:
        """A table, a CTE, a subquery, or joins in parentheses, with the joins attached to it."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            part = self._parenthesised(node)
        elif isinstance(node, exp.Table):
            part = self._table(node)
        elif isinstance(node, exp.Subquery):
            name = node.alias or self.parts.lowering.alias("subquery")
            part = _part(name, *self.parts.query(node.this, self.parts.ctes, name), node)
        elif isinstance(node, exp.Values):
            name = node.alias or self.parts.lowering.alias("rows")
            part = _part(name, values(self.parts.lowering, node, name), (), node)
        elif isinstance(node, exp.Query):
            what = "a query in FROM stands in parentheses"
            raise unsupported(node, what, "correct the SQL", code="FIVM101")
        else:
            what = f"{node.key.upper()} in FROM is not maintained yet"
            raise unsupported(node, what, "read a table or a subquery")
        for pivot in node.args.get("pivots") or []:
            if part.carried:
                what = "PIVOT over a query that depends on the query around the subquery"
                raise unsupported(pivot, what, "write the cells as aggregates with FILTER")
            part = pivoted(self.parts.lowering, part, pivot, self.parts.ctes)
        for join in node.args.get("joins") or []:
            part = self.join(part, join)
        for lateral in node.args.get("laterals") or []:
            part = self.generated(part, lateral)
        return part

    def _parenthesised(self, node: exp.Subquery) -> Part:
        inner = self.source(node.this)
        if not node.alias:
            return inner
        source = Source(node.alias, _renamed(node, inner.outputs))
        return replace(inner, sources=(source,), outputs=source.columns)

    def _table(self, node: exp.Table) -> Part:
        if is_range(node):
            name = node.alias or "range"
            return _part(name, number_range(self.parts.lowering, node, name), (), node)
        if isinstance(node.this, exp.Func):
            raise unsupported(
                node, "table functions are not maintained yet", "materialise the rows as a table"
            )
        parts = [p.name for p in (node.args.get("catalog"), node.args.get("db"), node.this) if p]
        name = node.alias or parts[-1]
        bound = self.parts.ctes.get(parts[0].lower()) if len(parts) == 1 else None
        if bound is not None:
            lowered, carried = self.parts.query(
                bound.cte.this, bound.visible, name, may_look_out=self._is_own(bound)
            )
            visible = tuple(zip(lowered.names, lowered.node.fields, strict=False))
            source = Source(name, _renamed(node, _renamed(bound.cte, visible)))
            return Part((source,), source.columns, (lowered.node,), carried=carried)
        relation = self.parts.lowering.catalog.find(relation_name(*parts))
        if relation is None:
            named = canonical(relation_name(*parts))
            known = [r.name for r in self.parts.lowering.catalog.relations]
            known += [bound.cte.alias for bound in self.parts.ctes.values()] if len(parts) == 1 else []
            raise FivmError(
                "FIVM103",
                f"{named} is not a relation of this model; there are {', '.join(known) or 'none'}",
                span=span_of(node),
                remedy=did_you_mean(named, known) or "use ref() or source(), or correct the name",
            )
        columns = tuple((c.name, c.type) for c in relation.columns)
        scan = Scan(relation.name, self.parts.lowering.alias(name), columns)
        qualifier = () if node.alias else tuple(part.lower() for part in parts[:-1])
        source = Source(name, _renamed(node, tuple((f.name, f) for f in scan.fields)), qualifier)
        return Part((source,), source.columns, (scan,))

    def _is_own(self, bound: BoundCte) -> bool:
        """Whether a CTE is one of this subquery, and may name columns of the query around it."""
        return self.parts.domain is not None and bound.captured is self.parts.domain.outer.captured


def _part(name: str, lowered: Lowered, carried: tuple[Field, ...], node: exp.Expr) -> Part:
    source = Source(name, _renamed(node, tuple(zip(lowered.names, lowered.node.fields, strict=False))))
    return Part((source,), source.columns, (lowered.node,), carried=carried)


def _renamed(node: exp.Expr, columns: tuple[tuple[str, Field], ...]) -> tuple[tuple[str, Field], ...]:
    """The columns under the names of an alias like ``t(a, b)``, where there is one."""
    alias = node.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    shown = column_names(names, [name for name, _ in columns], node)
    return tuple((name, field) for name, (_, field) in zip(shown, columns, strict=True))
