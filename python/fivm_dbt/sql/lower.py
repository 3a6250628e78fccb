"""Query AST to relational nodes. The only module that looks at the shape of a query.

Whatever is not recognised is refused with its position: nothing falls through.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.catalog import Catalog, SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.nodes import Field, Filter, Item, Join, Map, Node, Scan, UnionAll
from fivm_dbt.ir.scalar import Scalar, conjuncts
from fivm_dbt.naming import canonical, relation_name, unique_name
from fivm_dbt.sql.aggregation import aggregated, is_aggregated
from fivm_dbt.sql.expressions import to_scalar, unparenthesized
from fivm_dbt.sql.parse import parse, span_of, unsupported
from fivm_dbt.sql.scope import Scope, Source
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
        lowering = _Lowering(catalog, Typer(describe))
        lowered = lowering.query(parse(sql), {}, "result")
        _check_names(lowered)
        return lowered
    except FivmError as error:
        raise error.located(sql=sql) from None


def _check_names(lowered: Lowered) -> None:
    names = [name.lower() for name in lowered.names]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise FivmError("FIVM112", f"several columns are called {', '.join(double)}", remedy="give each its own alias")


class _Lowering:
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

    def query(self, node: exp.Expression, ctes: Ctes, wanted: str) -> Lowered:
        """A SELECT or UNION ALL as one node with its own alias."""
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise unsupported(with_, "recursive queries cannot be maintained", "materialise the result as a table")
            ctes = dict(ctes)
            for cte in with_.expressions:
                ctes[cte.alias.lower()] = BoundCte(cte, dict(ctes))
        self._check_modifiers(node)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes, wanted)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, wanted)
        if isinstance(node, exp.Union):
            return self._union(node, ctes, wanted)
        raise unsupported(node, f"{node.key.upper()} is not maintained yet", "use SELECT and UNION ALL")

    def _check_modifiers(self, node: exp.Expression) -> None:
        limit = node.args.get("limit") or node.args.get("offset")
        if limit is not None:
            if node.args.get("order") is None:
                raise FivmError(
                    "FIVM107",
                    "without ORDER BY any rows may be returned, so there is nothing to be equal to",
                    span=span_of(limit),
                    remedy="add ORDER BY columns that determine the order of all rows, or leave LIMIT out",
                )
            raise unsupported(limit, "LIMIT is not maintained yet", "leave it out and limit where the model is read")
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
        distinct = node.args.get("distinct")
        for key, (what, remedy) in refused.items():
            part = node.args.get(key)
            if not part or (key == "distinct" and not isinstance(node, exp.Select)):
                continue
            where = part[0] if isinstance(part, list) else part
            shown = where if isinstance(where, exp.Expression) and span_of(where) else node
            code = "FIVM106" if key == "sample" else "FIVM105"
            raise unsupported(node.selects[0] if shown is distinct else shown, what, remedy, code=code)

    def _union(self, node: exp.Union, ctes: Ctes, wanted: str) -> Lowered:
        if node.args.get("distinct"):
            raise unsupported(node, "UNION removes duplicates, which is not maintained yet", "use UNION ALL")
        if node.args.get("by_name"):
            raise unsupported(node, "UNION BY NAME is not maintained yet", "list the columns in the same order")
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

    def _common(self, left: Field, right: Field, node: exp.Expression) -> SparkType:
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
        scope, relation = self._from(node, ctes)
        where = node.args.get("where")
        if where is not None:
            predicates = tuple(to_scalar(p, scope) for p in conjuncts(where.this))
            relation = Filter(relation, predicates)
        projections = self._projections(node, scope)
        scope.aliases = {name.lower(): value for name, value in projections if not isinstance(value, exp.Column)}
        if is_aggregated(node, projections):
            return self._named(projections, aggregated(self, node, scope, relation, projections, wanted))
        scalars = [to_scalar(value, scope) for _, value in projections]
        items = self.items([name for name, _ in projections], scalars, scope, [v for _, v in projections])
        return self._named(projections, Map(relation, self.alias(wanted), items))

    def _named(self, projections: list[tuple[str, exp.Expression]], node: Node) -> Lowered:
        return Lowered(node, tuple(name for name, _ in projections))

    def _projections(self, node: exp.Select, scope: Scope) -> list[tuple[str, exp.Expression]]:
        """Name and expression of each output column, stars expanded."""
        result: list[tuple[str, exp.Expression]] = []
        for expression in node.expressions:
            if isinstance(expression, exp.Star) or (isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)):
                star = expression if isinstance(expression, exp.Star) else expression.this
                if any(star.args.get(k) for k in ("except_", "except", "replace", "rename", "ilike")):
                    raise unsupported(expression, "* EXCEPT / REPLACE is not supported yet", "list the columns")
                table = expression.table if isinstance(expression, exp.Column) else None
                result += [(name, f.scalar.ast()) for name, f in scope.star(table or None, expression)]
                continue
            value = expression.this if isinstance(expression, exp.Alias) else expression
            name = expression.alias_or_name or value.sql(dialect="spark", comments=False).lower()
            result.append((name, unparenthesized(value)))
        return result

    def items(
        self, names: list[str], scalars: list[Scalar], scope: Scope, shown: list[exp.Expression]
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

    # FROM

    def _from(self, node: exp.Select, ctes: Ctes) -> tuple[Scope, Node]:
        scope = Scope()
        factors: list[Node] = []
        predicates: list[Scalar] = []
        self._source(node.args["from_"].this, ctes, scope, factors, predicates)
        for join in node.args.get("joins") or []:
            self._join(join, ctes, scope, factors, predicates)
        relation = factors[0] if len(factors) == 1 and not predicates else Join(tuple(factors), tuple(predicates))
        return scope, relation

    def _join(self, join: exp.Join, ctes: Ctes, scope: Scope, factors: list[Node], predicates: list[Scalar]) -> None:
        side, kind, method = (str(join.args.get(k) or "").upper() for k in ("side", "kind", "method"))
        if side or kind not in ("", "INNER", "CROSS") or method not in ("", "NATURAL"):
            words = " ".join(w for w in (method, side, kind) if w)
            raise unsupported(join, f"{words} JOIN is not maintained yet", "use an inner join")
        left = list(scope.sources)
        self._source(join.this, ctes, scope, factors, predicates)
        right = scope.sources[len(left) :]
        if method == "NATURAL":
            names = [n for s in left for n, _ in s.columns if any(r.find(n) for r in right)]
            self._merge(list(dict.fromkeys(n.lower() for n in names)), left, right, scope, predicates, join)
        elif join.args.get("using"):
            self._merge([u.name for u in join.args["using"]], left, right, scope, predicates, join)
        elif join.args.get("on") is not None:
            predicates += [to_scalar(p, scope) for p in conjuncts(join.args["on"])]

    def _merge(
        self, names: list[str], left: list[Source], right: list[Source], scope: Scope, predicates: list[Scalar], join: exp.Join
    ) -> None:
        for name in names:
            already = next((f for n, f in scope.merged if n.lower() == name.lower()), None)
            found = [f for s in left if (f := s.find(name)) is not None]
            other = [f for s in right if (f := s.find(name)) is not None]
            if not found or not other:
                raise Scope(left if not found else right).unknown(exp.column(name))
            if (len(found) > 1 and already is None) or len(other) > 1:
                raise unsupported(join, f"{name} is ambiguous in USING or NATURAL", "use ON", code="FIVM104")
            first = already or found[0]
            predicates.append(Scalar(exp.EQ(this=first.scalar.ast(), expression=other[0].scalar.ast())))
            if already is None:
                scope.merged.append((next(n for s in left for n, f in s.columns if f == first), first))

    def _source(self, node: exp.Expression, ctes: Ctes, scope: Scope, factors: list[Node], predicates: list[Scalar]) -> None:
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            inner = node.this
            self._source(inner, ctes, scope, factors, predicates)
        elif isinstance(node, exp.Table):
            self._refuse_table_parts(node)
            source, factor = self._table(node, ctes)
            self._add(source, factor, node, scope, factors)
        elif isinstance(node, exp.Subquery):
            self._check_modifiers(node)
            name = node.alias or "subquery"
            lowered = self.query(node.this, ctes, name)
            source = self._renamed(name, lowered, node)
            self._add(source, lowered.node, node, scope, factors)
        else:
            raise unsupported(node, f"{node.key.upper()} in FROM is not maintained yet", "read a table or a subquery")
        for join in node.args.get("joins") or []:
            self._join(join, ctes, scope, factors, predicates)

    def _add(self, source: Source, factor: Node, node: exp.Expression, scope: Scope, factors: list[Node]) -> None:
        if any(s.name.lower() == source.name.lower() for s in scope.sources):
            raise FivmError(
                "FIVM104", f"two relations are called {source.name}", span=span_of(node), remedy="give each its own alias"
            )
        scope.sources.append(source)
        factors.append(factor)

    def _refuse_table_parts(self, node: exp.Table) -> None:
        if isinstance(node.this, exp.Func):
            raise unsupported(node, "table functions are not maintained yet", "materialise the rows as a table")
        for key, what in (("version", "time travel"), ("when", "time travel"), ("sample", "a sample"), ("pivots", "PIVOT")):
            if node.args.get(key):
                raise unsupported(node, f"{what} on an input cannot be maintained", "read the plain table")
        if node.args.get("laterals"):
            raise unsupported(node, "LATERAL VIEW is not maintained yet", "explode in a table model upstream")

    def _table(self, node: exp.Table, ctes: Ctes) -> tuple[Source, Node]:
        parts = [p.name for p in (node.args.get("catalog"), node.args.get("db"), node.this) if p]
        bound = ctes.get(parts[0].lower()) if len(parts) == 1 else None
        name = node.alias or parts[-1]
        if bound is not None:
            lowered = self.query(bound.cte.this, bound.visible, name)
            lowered = replace(lowered, names=_renamed(bound.cte, lowered))
            return self._renamed(name, lowered, node), lowered.node
        relation = self.catalog.find(relation_name(*parts))
        if relation is None:
            known = ", ".join(r.name for r in self.catalog.relations)
            raise FivmError(
                "FIVM103",
                f"{canonical(relation_name(*parts))} is not a relation of this model; there are {known or 'none'}",
                span=span_of(node),
                remedy="use ref() or source(), or correct the name",
            )
        alias = self.alias(name)
        scan = Scan(relation.name, alias, tuple((c.name, c.type) for c in relation.columns))
        lowered = Lowered(scan, tuple(c.name for c in relation.columns))
        return self._renamed(name, lowered, node), scan

    def _renamed(self, name: str, lowered: Lowered, node: exp.Expression) -> Source:
        names = _renamed(node, lowered)
        return Source(name, tuple(zip(names, lowered.node.fields, strict=True)))


def _renamed(node: exp.Expression, lowered: Lowered) -> tuple[str, ...]:
    alias = node.args.get("alias")
    columns = [c.name for c in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    if columns and len(columns) != len(lowered.names):
        raise FivmError(
            "FIVM102",
            f"{len(columns)} column names for {len(lowered.names)} columns",
            span=span_of(alias),
            remedy="name every column once",
        )
    return tuple(columns) or lowered.names


def cast(scalar: Scalar, source: SparkType, target: SparkType) -> Scalar:
    """``scalar`` as ``target``; unchanged where it has that type."""
    return scalar if source == target else Scalar(exp.cast(scalar.ast(), target.text, dialect="spark"))


def known_type(type_: SparkType | None, node: exp.Expression) -> SparkType:
    """``type_``, or FIVM109 pointing at ``node``."""
    if type_ is None:
        raise FivmError(
            "FIVM109",
            f"the type of {node.sql('spark')} is not known without a connection",
            span=span_of(node),
            remedy="wrap it in CAST(... AS type)",
        )
    return type_
