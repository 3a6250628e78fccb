"""Query AST to relational nodes. The only module that looks at the shape of a query.

Whatever is not recognised is refused with its position: nothing falls through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.catalog import Catalog, SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.nodes import Field, Filter, Item, Map, Node, UnionAll
from fivm_dbt.ir.scalar import Scalar, conjuncts
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.aggregation import aggregated, is_aggregated
from fivm_dbt.sql.expressions import to_scalar, unparenthesized
from fivm_dbt.sql.from_clause import from_clause
from fivm_dbt.sql.parse import parse, span_of, unsupported
from fivm_dbt.sql.scope import Scope
from fivm_dbt.sql.typing import Describe, Typer, common_type


@dataclass(frozen=True)
class BoundCte:
    """A CTE with the CTEs that are visible in its body: those before it, so that none can see itself."""

    cte: exp.CTE
    visible: Ctes


Ctes = dict[str, BoundCte]


@dataclass(frozen=True)
class Lowered:
    """A lowered query: its node, whose fields are the query's columns in order."""

    node: Node
    names: tuple[str, ...]


def lower(sql: str, catalog: Catalog, describe: Describe | None = None) -> Lowered:
    """The relational form of a query over the relations of ``catalog``.

    ``describe`` asks Spark for the columns of a query; without it types follow the rules of :mod:`typing`.
    Raises FIVM101 to FIVM113.
    """
    try:
        lowering = Lowering(catalog, Typer(describe))
        query = parse(sql)
        lowered = lowering.query(query, {}, "result")
        unusual = not all(name.isidentifier() for name in lowered.names)
        if describe is not None and unusual and not _names_its_columns(query):
            # Spark has names of its own for columns without an alias.
            lowered = replace(lowered, names=tuple(column.name for column in describe(sql)))
        _check_names(lowered)
        return lowered
    except FivmError as error:
        raise error.located(sql=sql) from None


def _check_names(lowered: Lowered) -> None:
    names = [name.lower() for name in lowered.names]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise FivmError(
            "FIVM112", f"several columns are called {', '.join(double)}", remedy="give each its own alias"
        )


def _names_its_columns(query: exp.Expr) -> bool:
    """Whether every output column is a column or has an alias; of a set operation the first branch counts."""
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.this
    named = (exp.Alias, exp.Column)
    return all(isinstance(p, named) and not p.is_star for p in getattr(query, "selects", []))


class Lowering:
    """State of one lowering: the aliases given out so far, so that each is unique in the whole query."""

    def __init__(self, catalog: Catalog, typer: Typer) -> None:
        self.catalog = catalog
        self.typer = typer
        self.taken: set[str] = set()

    def alias(self, wanted: str) -> str:
        name = unique_name(wanted, self.taken)
        self.taken.add(name.lower())
        return name

    # Queries

    def query(self, node: exp.Expr, ctes: Ctes, wanted: str) -> Lowered:
        """A SELECT or UNION ALL as one node with its own alias."""
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise unsupported(
                    with_, "recursive queries cannot be maintained", "materialise the result as a table"
                )
            ctes = dict(ctes)
            for cte in with_.expressions:
                ctes[cte.alias.lower()] = BoundCte(cte, dict(ctes))
        self.check_modifiers(node)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes, wanted)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, wanted)
        if isinstance(node, exp.Union):
            return self._union(node, ctes, wanted)
        raise unsupported(node, f"{node.key.upper()} is not maintained yet", "use SELECT and UNION ALL")

    def check_modifiers(self, node: exp.Expr) -> None:
        """Refuse the clauses around a query that are not maintained."""
        limit = node.args.get("limit") or node.args.get("offset")
        if limit is not None:
            if node.args.get("order") is None:
                raise FivmError(
                    "FIVM107",
                    "without ORDER BY any rows may be returned, so there is nothing to be equal to",
                    span=span_of(limit),
                    remedy="add ORDER BY columns that determine the order of all rows, or leave LIMIT out",
                )
            raise unsupported(
                limit, "LIMIT is not maintained yet", "leave it out and limit where the model is read"
            )
        refused = {
            "distinct": ("DISTINCT is not maintained yet", "GROUP BY the columns instead"),
            "laterals": ("LATERAL VIEW is not maintained yet", "explode in a table model upstream"),
            "qualify": ("QUALIFY is not maintained yet", "filter in a model downstream"),
            "windows": ("named windows are not maintained yet", "aggregate with GROUP BY instead"),
            "sample": ("a sample differs at every evaluation", "leave it out"),
            "pivots": ("PIVOT is not maintained yet", "use SUM(CASE ...) per column"),
            "connect": ("CONNECT BY cannot be maintained", "materialise the result as a table"),
            "match": ("MATCH_RECOGNIZE is not maintained yet", "compute it downstream"),
            "into": ("SELECT INTO is not a query", "leave it out"),
            "locks": ("locking clauses have no meaning here", "leave it out"),
            "operation_modifiers": ("this modifier of SELECT is not supported", "leave it out"),
            "kind": ("SELECT AS STRUCT is not Spark SQL", "use struct(...)"),
        }
        for key, (what, remedy) in refused.items():
            part = node.args.get(key)
            if not part or (key == "distinct" and not isinstance(node, exp.Select)):
                continue
            where = part[0] if isinstance(part, list) else part
            shown = where if isinstance(where, exp.Expr) and span_of(where) else node
            if isinstance(node, exp.Select) and shown is node and node.expressions:
                shown = node.expressions[0]
            raise unsupported(shown, what, remedy, code="FIVM106" if key == "sample" else "FIVM105")

    def _union(self, node: exp.Union, ctes: Ctes, wanted: str) -> Lowered:
        if node.args.get("distinct"):
            raise unsupported(node, "UNION removes duplicates, which is not maintained yet", "use UNION ALL")
        if node.args.get("by_name"):
            raise unsupported(
                node, "UNION BY NAME is not maintained yet", "list the columns in the same order"
            )
        alias = self.alias(wanted)
        branches = [self.query(part, ctes, f"{wanted}_branch") for part in (node.left, node.right)]
        left, right = branches
        if len(left.node.fields) != len(right.node.fields):
            raise FivmError(
                "FIVM113",
                f"{len(left.node.fields)} columns above, {len(right.node.fields)} below",
                span=span_of(node.right),
                remedy="give both branches the same columns",
            )
        types = [self._common(f, g, node) for f, g in zip(left.node.fields, right.node.fields, strict=True)]
        nodes = tuple(self._cast(branch, types) for branch in branches)
        return Lowered(UnionAll(nodes, alias), left.names)

    def _common(self, left: Field, right: Field, node: exp.Expr) -> SparkType:
        type_ = common_type([left.type, right.type])
        if type_ is None:
            raise FivmError(
                "FIVM113",
                f"column {left.name} is {left.type} above and {right.type} below",
                span=span_of(node),
                remedy="CAST both to one type",
            )
        return type_

    def _cast(self, branch: Lowered, types: list[SparkType]) -> Node:
        fields = branch.node.fields
        if [f.type for f in fields] == types:
            return branch.node
        items = tuple(Item(f.name, cast(f.scalar, f.type, t), t) for f, t in zip(fields, types, strict=True))
        return Map(branch.node, self.alias("branch"), items)

    # SELECT

    def _select(self, node: exp.Select, ctes: Ctes, wanted: str) -> Lowered:
        if node.args.get("from_") is None:
            raise unsupported(node, "SELECT without FROM has no input to maintain", "read it from a seed")
        scope, relation = from_clause(self, node, ctes)
        where = node.args.get("where")
        if where is not None:
            predicates = tuple(to_scalar(p, scope) for p in conjuncts(where.this))
            relation = Filter(relation, predicates)
        projections = self._projections(node, scope)
        aliases = {name.lower(): value for name, value in projections}
        scope = replace(scope, aliases=aliases)
        if is_aggregated(node, projections):
            return self._named(projections, aggregated(self, node, scope, relation, projections, wanted))
        scalars = [to_scalar(value, scope) for _, value in projections]
        items = self.items([name for name, _ in projections], scalars, scope, [v for _, v in projections])
        return self._named(projections, Map(relation, self.alias(wanted), items))

    def _named(self, projections: list[tuple[str, exp.Expr]], node: Node) -> Lowered:
        return Lowered(node, tuple(name for name, _ in projections))

    def _projections(self, node: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
        """Name and expression of each output column, stars expanded."""
        result: list[tuple[str, exp.Expr]] = []
        for expression in node.expressions:
            if isinstance(expression, exp.Star) or (
                isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
            ):
                star = expression if isinstance(expression, exp.Star) else expression.this
                if any(star.args.get(k) for k in ("except_", "except", "replace", "rename", "ilike")):
                    raise unsupported(
                        expression, "* EXCEPT / REPLACE is not supported yet", "list the columns"
                    )
                table = expression.table if isinstance(expression, exp.Column) else None
                result += scope.star(table or None, expression)
                continue
            value = expression.this if isinstance(expression, exp.Alias) else expression
            unnamed = value.sql(dialect="spark", comments=False).lower()
            name = expression.alias or (value.name if isinstance(value, (exp.Column, exp.Dot)) else unnamed)
            result.append((name, unparenthesized(value)))
        return result

    def items(
        self, names: list[str], scalars: list[Scalar], scope: Scope, shown: list[exp.Expr]
    ) -> tuple[Item, ...]:
        """Typed columns; raises FIVM109 where a type is unknown."""
        types = self.typer.types(scalars, scope.types)
        taken: set[str] = set()
        result = []
        for name, scalar, type_, where in zip(names, scalars, types, shown, strict=True):
            column = unique_name(name, taken)
            taken.add(column.lower())
            result.append(Item(column, scalar, known_type(type_, where)))
        return tuple(result)


def cast(scalar: Scalar, source: SparkType, target: SparkType) -> Scalar:
    """``scalar`` as ``target``; unchanged where it has that type."""
    return scalar if source == target else Scalar(exp.cast(scalar.ast(), target.text, dialect="spark"))


def known_type(type_: SparkType | None, node: exp.Expr) -> SparkType:
    """``type_``, or FIVM109 pointing at ``node``."""
    if type_ is None:
        raise FivmError(
            "FIVM109",
            f"the type of {node.sql('spark')} is not known without a connection",
            span=span_of(node),
            remedy="wrap it in CAST(... AS type)",
        )
    return type_
