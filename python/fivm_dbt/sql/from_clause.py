"""The FROM clause of one SELECT: its relations, the names they bring into scope, and the conditions that join them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.nodes import Field, Node, Scan, SemiJoin
from fivm_dbt.ir.scalar import Scalar, conjuncts
from fivm_dbt.naming import canonical, relation_name
from fivm_dbt.sql.domains import equal_columns
from fivm_dbt.sql.expressions import to_scalar
from fivm_dbt.sql.generators import lateral_view
from fivm_dbt.sql.lateral import lateral_join
from fivm_dbt.sql.match_recognize import matched
from fivm_dbt.sql.membership import has_subquery
from fivm_dbt.sql.number_ranges import is_range, number_range
from fivm_dbt.sql.outer_joins import Matching, as_one_item, behind_generators, outer_join
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.pivot import pivoted
from fivm_dbt.sql.scope import Scope, Source
from fivm_dbt.sql.subqueries import Around, filtered
from fivm_dbt.sql.values import one_row, values
from fivm_dbt.suggest import did_you_mean

if TYPE_CHECKING:
    from fivm_dbt.sql.domains import Domain
    from fivm_dbt.sql.lower import BoundCte, Ctes, Lowered, Lowering

_TABLE_PARTS = (
    ("version", "time travel"),
    ("when", "time travel"),
    ("sample", "a sample"),
)


_KINDS = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("RIGHT", ""): "right",
    ("FULL", ""): "full",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", "OUTER"): "right",
    ("FULL", "OUTER"): "full",
    ("", "SEMI"): "semi",
    ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti",
    ("LEFT", "ANTI"): "anti",
}


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
    if node.args.get("match") is not None:
        # It stands alone in its FROM clause: fivm_dbt.ir.match_tokens.
        if part.carried:
            what = "MATCH_RECOGNIZE over a query that depends on the query around the subquery"
            raise unsupported(node.args["match"], what, "match in a model of its own")
        part = matched(lowering, part, node.args["match"])
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


_Result = TypeVar("_Result")


class _FromClause:
    """Reads one FROM clause; ``domain`` is that of the subquery whose clause it is, None where it is correlated with
    nothing."""

    def __init__(self, lowering: Lowering, ctes: Ctes, domain: Domain | None) -> None:
        self.lowering = lowering
        self.ctes = ctes
        self.domain = domain

    # Correlation

    def bound(self, part: Part) -> Part:
        """The part for every value of the domain, with what was deferred decided."""
        if self.domain is None:
            return part
        if not part.carried:
            every = self.domain.again(self.lowering.alias)
            assert every.node is not None
            part = replace(part, factors=(*part.factors, every.node), carried=every.outer.fields)
        scope = part.scope_in(self.domain.outer)
        decided = tuple(to_scalar(p, scope) for p in part.deferred)
        return replace(part, predicates=(*part.predicates, *decided), deferred=())

    def scope(self, part: Part) -> Scope:
        return part.scope_in(self.domain.outer if self.domain is not None else None)

    def per_value(self, part: Part, read: Callable[[Part], _Result]) -> _Result:
        """What ``read`` gives for a part; where it names columns of the query around, for the part that has them."""
        try:
            return read(part)
        except FivmError as error:
            if error.code.number != "FIVM102" or self.domain is None or part.carried:
                raise
        return read(self.bound(part))

    def query(
        self, node: exp.Expr, ctes: Ctes, name: str, *, may_look_out: bool = True
    ) -> tuple[Lowered, tuple[Field, ...]]:
        """A query in FROM; where it names columns of the query around, for each of their values, with these columns."""
        try:
            return self.lowering.query(node, ctes, name), ()
        except FivmError as error:
            if error.code.number != "FIVM102" or self.domain is None or not may_look_out:
                raise
        lowered = self.lowering.query(node, ctes, name, self.domain.again(self.lowering.alias))
        return lowered, lowered.node.fields[len(lowered.names) :]

    # Joins

    def product(self, left: Part, right: Part) -> Part:
        """Both side by side. Raises FIVM104 where two relations have one name."""
        names = {s.name.lower() for s in left.sources}
        double = next((s.name for s in right.sources if s.name.lower() in names), None)
        if double is not None:
            raise FivmError("FIVM104", f"two relations are called {double}", remedy="give each its own alias")
        return Part(
            left.sources + right.sources,
            left.outputs + right.outputs,
            left.factors + right.factors,
            left.predicates + right.predicates + _of_one_value(left, right),
            left.carried or right.carried,
            left.deferred + right.deferred,
        )

    def join(self, left: Part, join: exp.Join) -> Part:
        kind = _kind(join)
        if isinstance(join.this, exp.Lateral):
            return self.lateral(left, join, kind)
        right = self.source(join.this)
        asked = [p for p in _on(join) if has_subquery(p)]
        if kind != "inner":
            left = behind_generators(self.lowering, left)
        left, right = self._sides_asked(left, right, kind, asked)
        if kind == "inner":
            both = self.product(left, right)
            matching, deferred = self._matching(left, right, both, join)
            return replace(
                both,
                outputs=matching.outputs,
                predicates=both.predicates + matching.predicates,
                deferred=both.deferred + deferred,
            )
        left, right = self._bound_sides(left, right, kind, join)
        right = as_one_item(self.lowering, right) if kind in ("semi", "anti") else right
        both = self.product(left, right)
        matching, _ = self._matching(left, right, both, join)
        matching = replace(matching, predicates=matching.predicates + _of_one_value(left, right))
        if kind in ("semi", "anti"):
            # The columns on the right are gone behind it.
            node = SemiJoin(left.node, right.node, matching.predicates, kind == "anti")
            return replace(left, factors=(node,), predicates=())
        joined = outer_join(self.lowering, left, right, matching, kind)
        return replace(joined, carried=(right if kind == "right" else left).carried)

    def _bound_sides(self, left: Part, right: Part, kind: str, join: exp.Join) -> tuple[Part, Part]:
        """The sides of an outer join or a semijoin: if its optional side or its condition depends on the query around,
        the side whose rows are kept does too."""
        if self.domain is None:
            return left, right
        kept, optional = (right, left) if kind == "right" else (left, right)
        if optional.deferred or (kind == "full" and kept.deferred):
            optional = self.bound(optional)
        if kept.deferred:
            kept = self.bound(kept)
        both = self.product(left, right)
        depends = bool(kept.carried or optional.carried) or any(
            self._looks_out(p, both) for p in _on(join) if not has_subquery(p)
        )
        if depends and kind == "full":
            raise unsupported(
                join,
                "a FULL JOIN that depends on the query around the subquery",
                "write it as a LEFT JOIN and a UNION ALL of an ANTI JOIN",
            )
        if depends and not kept.carried:
            kept = self.bound(kept)
        return (optional, kept) if kind == "right" else (kept, optional)

    def _looks_out(self, condition: exp.Expr, both: Part) -> bool:
        """Whether a condition names columns of the query around the subquery."""
        try:
            to_scalar(condition, both.scope)
        except FivmError as error:
            if error.code.number != "FIVM102":
                raise
            return True
        return False

    def lateral(self, left: Part, join: exp.Join, kind: str) -> Part:
        if kind not in ("inner", "left"):
            raise unsupported(join, f"{kind.upper()} JOIN LATERAL is not Spark SQL", "use LEFT JOIN LATERAL")
        if not isinstance(join.this.this, exp.Subquery):
            return self.generated(left, join.this, outer=kind == "left")
        left = behind_generators(self.lowering, left)

        def joined(part: Part) -> Part:
            around = Around(self.lowering, part.node, self.scope(part), self.ctes)
            return lateral_join(around, part, join, outer=kind == "left")

        return self.per_value(left, joined)

    def generated(self, part: Part, lateral: exp.Lateral, *, outer: bool = False) -> Part:
        return self.per_value(
            part, lambda p: lateral_view(self.lowering, p, self.scope(p), lateral, outer=outer)
        )

    def _asked(self, part: Part, predicate: exp.Expr) -> Part:
        """The rows of ``part`` for which a condition with a subquery holds."""
        part = behind_generators(self.lowering, part)
        around = filtered(Around(self.lowering, part.node, self.scope(part), self.ctes), predicate)
        return replace(
            part,
            sources=around.scope.sources,
            outputs=around.scope.outputs,
            factors=(around.relation,),
            predicates=(),
        )

    def _sides_asked(self, left: Part, right: Part, kind: str, asked: list[exp.Expr]) -> tuple[Part, Part]:
        """Conditions with subqueries decide which rows of a side there are: of either one of an inner join, of the
        optional one of the others. Spark takes none that looks at both."""
        for predicate in asked:
            if kind == "full":
                what = "a subquery in the condition of a FULL JOIN"
                raise unsupported(predicate, what, "filter a side in a subquery in FROM")
            if kind in ("inner", "right") and (found := self._asked_alone(left, predicate)) is not None:
                left = found
            elif kind != "right" and (found := self._asked_alone(right, predicate)) is not None:
                right = found
            else:
                self._asked(
                    self.product(left, right), predicate
                )  # what is wrong with it otherwise is said here
                needed = {"inner": "both sides", "right": "its right side"}.get(kind, "its left side")
                raise unsupported(
                    predicate,
                    f"a subquery in the condition of a {kind.upper()} JOIN that looks at {needed}",
                    "put it into WHERE behind an inner join, or compute it as a column of a subquery in FROM",
                )
        return left, right

    def _asked_alone(self, part: Part, predicate: exp.Expr) -> Part | None:
        """The rows of one side for which the condition holds; None where it needs columns of the other."""
        try:
            return self._asked(part, predicate)
        except FivmError as error:
            if error.code.number != "FIVM102":
                raise
            return None

    def _matching(
        self, left: Part, right: Part, both: Part, join: exp.Join
    ) -> tuple[Matching, tuple[exp.Expr, ...]]:
        """The condition of a join with the columns of ``*`` over its result, and what of it is deferred."""
        if str(join.args.get("method") or "").upper() == "NATURAL":
            theirs = {name.lower() for name, _ in right.outputs}
            return self._using(
                left, right, both, [n for n, _ in left.outputs if n.lower() in theirs], join
            ), ()
        if join.args.get("using"):
            return self._using(left, right, both, [u.name for u in join.args["using"]], join), ()
        on: list[Scalar] = []
        deferred: list[exp.Expr] = []
        for predicate in (p for p in _on(join) if not has_subquery(p)):
            if self.domain is not None and not both.carried and self._looks_out(predicate, both):
                deferred.append(predicate)
            else:
                on.append(to_scalar(predicate, self.scope(both)))
        return Matching(tuple(on), both.outputs), tuple(deferred)

    def _using(self, left: Part, right: Part, both: Part, names: list[str], join: exp.Join) -> Matching:
        """Equal columns become one, which stands first and is the left one."""
        merged: list[tuple[str, Field]] = []
        equal: list[Scalar] = []
        pairs: list[tuple[Field, Field]] = []
        for name in names:
            ours, theirs = (self._one(part, name, join) for part in (left, right))
            merged.append(ours)
            pairs.append((ours[1], theirs[1]))
            equal.append(Scalar(exp.EQ(this=ours[1].scalar.ast(), expression=theirs[1].scalar.ast())))
        gone = {name.lower() for name in names}
        rest = tuple(output for output in both.outputs if output[0].lower() not in gone)
        return Matching(tuple(equal), (*merged, *rest), tuple(pairs))

    def _one(self, part: Part, name: str, join: exp.Join) -> tuple[str, Field]:
        found = [output for output in part.outputs if output[0].lower() == name.lower()]
        if not found:
            raise part.scope.unknown(exp.column(name))
        if len(found) > 1:
            what = f"{name} is a column of several relations on one side of USING or NATURAL"
            raise unsupported(join, what, "join with ON", code="FIVM104")
        return found[0]

    def source(self, node: exp.Expr) -> Part:
        """A table, a CTE, a subquery, or joins in parentheses, with the joins attached to it."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            part = self._parenthesised(node)
        elif isinstance(node, exp.Table):
            part = self._table(node)
        elif isinstance(node, exp.Subquery):
            self.lowering.check_modifiers(node)
            name = node.alias or self.lowering.alias("subquery")
            part = _part(name, *self.query(node.this, self.ctes, name), node)
        elif isinstance(node, exp.Values):
            name = node.alias or self.lowering.alias("rows")
            part = _part(name, values(self.lowering, node, name), (), node)
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
            part = pivoted(self.lowering, part, pivot, self.ctes)
        for join in node.args.get("joins") or []:
            part = self.join(part, join)
        for lateral in node.args.get("laterals") or []:
            part = self.generated(part, lateral)
        return part

    def _parenthesised(self, node: exp.Subquery) -> Part:
        self.lowering.check_modifiers(node)
        inner = self.source(node.this)
        if not node.alias:
            return inner
        source = Source(node.alias, _renamed(node, inner.outputs))
        return replace(inner, sources=(source,), outputs=source.columns)

    def _table(self, node: exp.Table) -> Part:
        if is_range(node):
            name = node.alias or "range"
            return _part(name, number_range(self.lowering, node, name), (), node)
        self._refuse_parts(node)
        parts = [p.name for p in (node.args.get("catalog"), node.args.get("db"), node.this) if p]
        name = node.alias or parts[-1]
        bound = self.ctes.get(parts[0].lower()) if len(parts) == 1 else None
        if bound is not None:
            lowered, carried = self.query(
                bound.cte.this, bound.visible, name, may_look_out=self._is_own(bound)
            )
            visible = tuple(zip(lowered.names, lowered.node.fields, strict=False))
            source = Source(name, _renamed(node, _renamed(bound.cte, visible)))
            return Part((source,), source.columns, (lowered.node,), carried=carried)
        relation = self.lowering.catalog.find(relation_name(*parts))
        if relation is None:
            named = canonical(relation_name(*parts))
            known = [r.name for r in self.lowering.catalog.relations]
            known += [bound.cte.alias for bound in self.ctes.values()] if len(parts) == 1 else []
            raise FivmError(
                "FIVM103",
                f"{named} is not a relation of this model; there are {', '.join(known) or 'none'}",
                span=span_of(node),
                remedy=did_you_mean(named, known) or "use ref() or source(), or correct the name",
            )
        columns = tuple((c.name, c.type) for c in relation.columns)
        scan = Scan(relation.name, self.lowering.alias(name), columns)
        qualifier = () if node.alias else tuple(part.lower() for part in parts[:-1])
        source = Source(name, _renamed(node, tuple((f.name, f) for f in scan.fields)), qualifier)
        return Part((source,), source.columns, (scan,))

    def _is_own(self, bound: BoundCte) -> bool:
        """Whether a CTE is one of this subquery, and may name columns of the query around it."""
        return self.domain is not None and bound.captured is self.domain.outer.captured

    def _refuse_parts(self, node: exp.Table) -> None:
        if isinstance(node.this, exp.Func):
            raise unsupported(
                node, "table functions are not maintained yet", "materialise the rows as a table"
            )
        for key, what in _TABLE_PARTS:
            if node.args.get(key):
                raise unsupported(node, f"{what} on an input cannot be maintained", "read the plain table")


def _on(join: exp.Join) -> list[exp.Expr]:
    """The conditions after ON."""
    condition = join.args.get("on")
    return [] if condition is None else conjuncts(condition)


def _kind(join: exp.Join) -> str:
    """inner, left, right, full, semi or anti."""
    side, kind, method = (str(join.args.get(k) or "").upper() for k in ("side", "kind", "method"))
    found = _KINDS.get((side, kind))
    if found is None or method not in ("", "NATURAL"):
        words = " ".join(w for w in (method, side, kind) if w)
        raise unsupported(join, f"{words} JOIN is not Spark SQL", "use a join that Spark has")
    return found


def _part(name: str, lowered: Lowered, carried: tuple[Field, ...], node: exp.Expr) -> Part:
    source = Source(name, _renamed(node, tuple(zip(lowered.names, lowered.node.fields, strict=False))))
    return Part((source,), source.columns, (lowered.node,), carried=carried)


def _of_one_value(left: Part, right: Part) -> tuple[Scalar, ...]:
    """That both parts are of the same value of the domain, where both depend on it."""
    if not left.carried or not right.carried:
        return ()
    return equal_columns(tuple(f.scalar for f in left.carried), right.carried)


def _renamed(node: exp.Expr, columns: tuple[tuple[str, Field], ...]) -> tuple[tuple[str, Field], ...]:
    """The columns under the names of an alias like ``t(a, b)``, where there is one."""
    alias = node.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    if not names:
        return columns
    if len(names) != len(columns):
        raise FivmError(
            "FIVM102",
            f"{len(names)} column names for {len(columns)} columns",
            span=span_of(node),
            remedy="name every column once",
        )
    return tuple((name, field) for name, (_, field) in zip(names, columns, strict=True))
