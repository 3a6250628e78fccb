"""A model that is exposed as a table has a copy of what its states show, which follows them by what has changed.

With T the table at what the model showed before, and ΔV the net change of what it shows, as bags,

``T' = T ⊎ ΔV = (T ▷ ΔV) ⊎ {v → T(v) + ΔV(v) : v ∈ ΔV}``

so that the copies of a changed row are deleted, and as many inserted as there are now, by one MERGE.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import Column, Relation
from fivm_dbt.ir.scalar import column_ast, identifier
from fivm_dbt.naming import COUNT, EXPOSES_PROPERTY, SIGN, staged_name
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.capture import net_change_of
from fivm_dbt.spark.formats import FORMAT, Need
from fivm_dbt.spark.pieces import Condition, Query, table
from fivm_dbt.spark.properties import owner_properties
from fivm_dbt.spark.reads import presented
from fivm_dbt.spark.state import create_table


@dataclass(frozen=True)
class Bounds:
    """What a column has in changed rows, as literals: between ``low`` and ``high``, or NULL if ``has_null``."""

    column: Column
    low: object
    high: object
    has_null: bool

    @property
    def is_empty(self) -> bool:
        """Whether there are no changed rows."""
        return self.low is None and not self.has_null

    def of(self, alias: str) -> Condition:
        """The condition that the column of a relation is one of these."""
        column = column_ast(alias, self.column.name)
        tests: list[exp.Expr] = [column.is_(exp.null())] if self.has_null else []
        if self.low is not None:
            tests.append(exp.Between(this=column, low=self._literal(self.low), high=self._literal(self.high)))
        return exp.or_(*tests, copy=False) if tests else exp.false()

    def _literal(self, value: object) -> exp.Expr:
        text = exp.Literal.string(str(value))
        return exp.cast(text, self.column.type.text, dialect="spark")


def copied(plan: Plan, version: int) -> exp.Create:
    """The whole table anew, of a version of the states."""
    shown = presented(plan.presentation, FORMAT.pinned(plan.presentation.root, version))
    needs = FORMAT.properties([Need.CHANGES])
    return create_table(
        plan.relation, shown, {**needs, **owner_properties(plan), EXPOSES_PROPERTY: plan.state_relation}
    )


def as_input(plan: Plan) -> PlanInput:
    """The model as an input of its own table."""
    shown = Relation(plan.relation, plan.shown, kind="fivm", presentation=plan.presentation)
    return PlanInput(shown, plan.shown, is_static=False)


def changed_rows(plan: Plan, since: int, version: int) -> Query:
    """``ΔV``: the rows that are shown more or less often since, by how many."""
    return net_change_of(as_input(plan), since, version)


def staged_rows(plan: Plan) -> str:
    """Where the changed rows are staged."""
    return staged_name(plan.relation, "exposed")


def bounding(plan: Plan) -> Column | None:
    """The column by which Delta finds the files of changed rows: the first one in whose order rows may lie.

    None where no column is a time or a whole number.
    """
    times = [c for c in plan.shown if c.type.is_temporal]
    numbers = [c for c in plan.shown if c.type.is_integral]
    return next(iter((*times, *numbers)), None)


def bounds_query(plan: Plan, column: Column) -> Query:
    """The least and the greatest value of a column in the changed rows, as text, and whether one has none."""
    value = column_ast("", column.name)
    ends = (exp.cast(call(this=value.copy()), "string") for call in (exp.Min, exp.Max))
    has_null = exp.Max(
        this=exp.func("IF", value.is_(exp.null()), exp.Literal.number(1), exp.Literal.number(0))
    )
    return exp.select(*ends, has_null, copy=False).from_(table(staged_rows(plan)), copy=False)


def followed(plan: Plan, version: int, bounds: Bounds | None) -> exp.Merge:
    """``T'`` from ``T`` at its own ``version``, and the changed rows that are staged, which lie between ``bounds``."""
    names = [c.name for c in plan.shown]
    union = exp.union(_gone(plan, names), _there(plan, names, version, bounds), distinct=False, copy=False)
    is_gone = exp.EQ(this=column_ast("delta", SIGN), expression=exp.Literal.number(-1))
    tests = [bounds.of("target")] if bounds is not None else []
    tests += [is_gone, *_same("target", "delta", names)]
    inserted = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(identifier(n)) for n in names]),
        expression=exp.Tuple(expressions=[column_ast("delta", n) for n in names]),
    )
    is_there = exp.EQ(this=column_ast("delta", SIGN), expression=exp.Literal.number(1))
    return exp.Merge(
        this=table(plan.relation).as_("target", copy=False),
        using=union.subquery("delta", copy=False),
        on=exp.and_(*tests, copy=False),
        whens=exp.Whens(
            expressions=[
                exp.When(matched=True, then=exp.Var(this="DELETE")),
                exp.When(matched=False, condition=is_there, then=inserted),
            ]
        ),
    )


def _gone(plan: Plan, names: list[str]) -> exp.Select:
    """The changed rows, of which all copies go."""
    sign = exp.alias_(exp.Literal.number(-1), SIGN)
    return exp.select(*(column_ast("", n) for n in names), sign, copy=False).from_(
        table(staged_rows(plan)), copy=False
    )


def _there(plan: Plan, names: list[str], version: int, bounds: Bounds | None) -> exp.Select:
    """The changed rows that are there now, each as often as it is."""
    own = exp.select(
        *(column_ast("own", n) for n in names), exp.alias_(exp.Literal.number(1), COUNT), copy=False
    ).from_(FORMAT.pinned(plan.relation, version).as_("own", copy=False), copy=False)
    own = own.join(
        table(staged_rows(plan)).as_("changed", copy=False),
        on=exp.and_(*_same("own", "changed", names), copy=False),
        join_type="left semi",
        copy=False,
    )
    if bounds is not None:
        own = own.where(bounds.of("own"), copy=False)
    delta = exp.select(*(column_ast("", n) for n in names), exp.column(COUNT), copy=False).from_(
        table(staged_rows(plan)), copy=False
    )
    both = exp.union(own, delta, distinct=False, copy=False).subquery("both", copy=False)
    total = exp.Sum(this=exp.column(COUNT))
    counted = exp.select(*(column_ast("", n) for n in names), exp.alias_(total, COUNT), copy=False)
    counted = counted.from_(both, copy=False).group_by(*(column_ast("", n) for n in names), copy=False)
    counted = counted.having(exp.GT(this=total.copy(), expression=exp.Literal.number(0)), copy=False)
    last = exp.cast(exp.column(COUNT), "int")
    times = exp.Explode(this=exp.Anonymous(this="SEQUENCE", expressions=[exp.Literal.number(1), last]))
    repeated = exp.select(*(column_ast("", n) for n in names), exp.alias_(times, "copy_number"), copy=False)
    each = repeated.from_(counted.subquery("counted", copy=False), copy=False).subquery("each", copy=False)
    sign = exp.alias_(exp.Literal.number(1), SIGN)
    return exp.select(*(column_ast("", n) for n in names), sign, copy=False).from_(each, copy=False)


def _same(one: str, other: str, names: list[str]) -> list[exp.Expr]:
    return [exp.NullSafeEQ(this=column_ast(one, n), expression=column_ast(other, n)) for n in names]
