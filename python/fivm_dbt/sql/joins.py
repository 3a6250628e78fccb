"""Joins of a FROM clause have kinds, and ON, USING and NATURAL give their conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Field
from fivm_dbt.ir.one_sided import SemiJoin
from fivm_dbt.ir.scalar import Scalar, conjuncts
from fivm_dbt.sql.bound_parts import BoundParts, of_one_value
from fivm_dbt.sql.expressions import to_scalar
from fivm_dbt.sql.lateral import lateral_join
from fivm_dbt.sql.membership import has_subquery
from fivm_dbt.sql.outer_joins import Matching, as_one_item, behind_generators, outer_join
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.subqueries import filtered, with_columns

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
class Joins:
    """Joins parts of a FROM clause."""

    parts: BoundParts

    def product(self, left: Part, right: Part) -> Part:
        """Both side by side. Raises FIVM104 where two relations have one name."""
        names = {s.name.lower() for s in left.sources}
        double = next((s.name for s in right.sources if s.name.lower() in names), None)
        if double is not None:
            raise FivmError("FIVM104", f"two relations are called {double}", remedy="give each its own alias")
        return Part(
            left.sources + right.sources,
            left.outputs + right.outputs,
            factors=left.factors + right.factors,
            predicates=left.predicates + right.predicates + of_one_value(left, right),
            carried=left.carried or right.carried,
            deferred=left.deferred + right.deferred,
        )

    def join(self, left: Part, right: Part, join: exp.Join) -> Part:
        kind = join_kind(join)
        asked = [p for p in _on(join) if has_subquery(p)]
        if kind != "inner":
            left = behind_generators(self.parts.lowering, left)
        left, right, answered = self._sides_asked(left, right, kind, asked)
        merged = _merged(left, right, join) or []
        left, right = _put_first(left, merged), _put_first(right, merged)
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
        right = as_one_item(self.parts.lowering, right) if kind in ("semi", "anti") else right
        both = self.product(left, right)
        matching, _ = self._matching(left, right, both, join)
        both_hold = (*matching.predicates, *answered, *of_one_value(left, right))
        matching = replace(matching, predicates=both_hold)
        if kind in ("semi", "anti"):
            # The columns on the right are gone behind it.
            node = SemiJoin(left.node, right.node, matching.predicates, kind == "anti")
            kept = {field.id for _, field in left.outputs}
            outputs = tuple(output for output in matching.outputs if output[1].id in kept)
            return replace(left, outputs=outputs, factors=(node,), predicates=())
        joined = outer_join(self.parts.lowering, left, right, matching, kind)
        return replace(joined, carried=(right if kind == "right" else left).carried)

    def _bound_sides(self, left: Part, right: Part, kind: str, join: exp.Join) -> tuple[Part, Part]:
        """The sides of an outer join or a semijoin: if its optional side or its condition depends on the query around,
        the side whose rows are kept does too."""
        if self.parts.domain is None:
            return left, right
        kept, optional = (right, left) if kind == "right" else (left, right)
        if optional.deferred or (kind == "full" and kept.deferred):
            optional = self.parts.bound(optional)
        if kept.deferred:
            kept = self.parts.bound(kept)
        both = self.product(left, right)
        depends = bool(kept.carried or optional.carried) or any(
            self.parts.looks_out(p, both) for p in _on(join) if not has_subquery(p)
        )
        if depends and kind == "full":
            raise unsupported(
                join,
                "a FULL JOIN that depends on the query around the subquery",
                "write it as a LEFT JOIN and a UNION ALL of an ANTI JOIN",
            )
        if depends and not kept.carried:
            kept = self.parts.bound(kept)
        return (optional, kept) if kind == "right" else (kept, optional)

    def lateral(self, left: Part, join: exp.Join) -> Part:
        """``left, LATERAL (query)`` and its kinds."""
        kind = join_kind(join)
        if kind not in ("inner", "left"):
            raise unsupported(join, f"{kind.upper()} JOIN LATERAL is not Spark SQL", "use LEFT JOIN LATERAL")
        left = behind_generators(self.parts.lowering, left)

        def joined(part: Part) -> Part:
            around = self.parts.around(part)
            return lateral_join(around, part, join, outer=kind == "left")

        return self.parts.per_value(left, joined)

    def _asked(self, part: Part, predicate: exp.Expr) -> Part:
        """The rows of ``part`` for which a condition with a subquery holds."""
        part = behind_generators(self.parts.lowering, part)
        around = filtered(self.parts.around(part), predicate)
        return replace(
            part,
            sources=around.scope.sources,
            outputs=around.scope.outputs,
            factors=(around.relation,),
            predicates=(),
        )

    def _sides_asked(
        self, left: Part, right: Part, kind: str, asked: list[exp.Expr]
    ) -> tuple[Part, Part, tuple[Scalar, ...]]:
        """Conditions with subqueries look at one side: Spark takes none that looks at both.

        They decide which rows there are of either side of an inner join, and of the optional side of another one. Of a
        side whose rows are all kept their subqueries become columns: these conditions are given back, to be a part of
        the join's.
        """
        conditions: list[Scalar] = []
        for predicate in asked:
            if kind in ("inner", "right") and (found := self._asked_alone(left, predicate)) is not None:
                left = found
            elif kind not in ("right", "full") and (found := self._asked_alone(right, predicate)) is not None:
                right = found
            elif kind in ("left", "semi", "anti", "full") and (column := self._as_column(left, predicate)):
                left, condition = column
                conditions.append(condition)
            elif kind in ("right", "full") and (column := self._as_column(right, predicate)):
                right, condition = column
                conditions.append(condition)
            else:
                self._asked(
                    self.product(left, right), predicate
                )  # what is wrong with it otherwise is said here
                raise unsupported(
                    predicate,
                    f"a subquery in the condition of a {kind.upper()} JOIN that looks at both sides",
                    "put it into WHERE behind an inner join, or compute it as a column of a subquery in FROM",
                )
        return left, right, tuple(conditions)

    def _as_column(self, part: Part, predicate: exp.Expr) -> tuple[Part, Scalar] | None:
        """The part with the values of a condition's subqueries, and the condition over it; None where it needs columns
        of the other side."""
        part = behind_generators(self.parts.lowering, part)
        around = self.parts.around(part)
        try:
            around, rest = with_columns(around, predicate)
            condition = to_scalar(rest, around.scope)
        except FivmError as error:
            if error.code.number != "FIVM102":
                raise
            return None
        return replace(part, factors=(around.relation,), predicates=()), condition

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
        merged = _merged(left, right, join)
        if merged is not None:
            return self._using(left, right, both, merged, join), ()
        on: list[Scalar] = []
        deferred: list[exp.Expr] = []
        for predicate in (p for p in _on(join) if not has_subquery(p)):
            if self.parts.domain is not None and not both.carried and self.parts.looks_out(predicate, both):
                deferred.append(predicate)
            else:
                on.append(to_scalar(predicate, self.parts.scope(both)))
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


def _merged(left: Part, right: Part, join: exp.Join) -> list[str] | None:
    """The names of the columns that USING or NATURAL makes one; None of other joins."""
    if str(join.args.get("method") or "").upper() == "NATURAL":
        theirs = {name.lower() for name, _ in right.outputs}
        return [n for n, _ in left.outputs if n.lower() in theirs]
    using = join.args.get("using")
    return [u.name for u in using] if using else None


def _put_first(part: Part, merged: list[str]) -> Part:
    """``t.*`` begins with columns that are made one too."""
    places = {name.lower(): place for place, name in enumerate(merged)}
    sources = tuple(
        replace(s, columns=tuple(sorted(s.columns, key=lambda c: places.get(c[0].lower(), len(places)))))
        for s in part.sources
    )
    return replace(part, sources=sources) if merged else part


def _on(join: exp.Join) -> list[exp.Expr]:
    """The conditions after ON."""
    condition = join.args.get("on")
    return [] if condition is None else conjuncts(condition)


def join_kind(join: exp.Join) -> str:
    """inner, left, right, full, semi or anti."""
    side, kind, method = (str(join.args.get(k) or "").upper() for k in ("side", "kind", "method"))
    found = _KINDS.get((side, kind))
    if found is None or method not in ("", "NATURAL"):
        words = " ".join(w for w in (method, side, kind) if w)
        raise unsupported(join, f"{words} JOIN is not Spark SQL", "use a join that Spark has")
    return found
