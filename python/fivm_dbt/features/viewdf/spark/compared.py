"""Parts that are computed again are compared with what is stored, and what is another now is written (ViewDF, 4.3).

Both sides are added up per tuple in one statement: ``t → (new(t), new(t) − old(t))``. From its result follows which
parts have changed, what they have now, and what the change feed has to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlglot import exp

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.features.viewdf.plan.model import PART, ViewdfPlan
from fivm_dbt.features.viewdf.spark.queries import partition_of
from fivm_dbt.features.viewdf.spark.statements import computed, is_new, reading_these
from fivm_dbt.ir.scalar import as_type, column_ast, identifier
from fivm_dbt.naming import COUNT, PARTITION, PREFIX
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.heads import head_row
from fivm_dbt.spark.part_time import number_of, whole
from fivm_dbt.spark.pieces import Condition, Query, table, union_all
from fivm_dbt.spark.states import as_stored, lay_out_rows, of_view, stored, with_head

HAS = f"{PREFIX}has"
"""How often a tuple is there by what was computed; COUNT is how many more that is than are stored."""


def compared_query(plan: ViewdfPlan, query: exp.Query, compared: Intervals, before: int) -> exp.Select:
    """What a query has of each tuple, and how many more that is than at version ``before`` of the state.

    Old rows are those of ``compared`` parts alone.
    """

    def side(source: exp.Expr, has: int, comes: int) -> exp.Select:
        counts = (exp.alias_(whole(has), HAS), exp.alias_(whole(comes), COUNT))
        return exp.select(*_columns(plan), *counts, copy=False).from_(source, copy=False)

    new = side(computed(query), 1, 1)
    old = side(stored(plan, plan.top, before, reading_these(plan, compared)), 0, -1)
    both = exp.union(new, old, distinct=False, copy=False)
    return _added_up(plan, both, (HAS, COUNT))


def differences_query(plan: ViewdfPlan, staged: str) -> exp.Select:
    """Per part of what :func:`compared_query` gave how many rows it has, and how many came or went."""
    number = number_of(exp.column(PART_TIMESTAMP), TIMESTAMP, plan.parts.length)
    differing = exp.alias_(exp.Sum(this=exp.Abs(this=exp.column(COUNT))), "differing")
    query = exp.select(exp.alias_(number, PART), exp.alias_(exp.Sum(this=exp.column(HAS)), "rows"), differing)
    return query.from_(table(staged), copy=False).group_by(number.copy(), copy=False)


def compared_rows(plan: ViewdfPlan, staged: str) -> exp.Subquery:
    """The rows that the query had, by what :func:`compared_query` gave of it."""
    return _repeated(plan, table(staged), exp.column(HAS)).subquery("computed", copy=False)


@dataclass(frozen=True)
class Anew:
    """Some periods are written anew from what they had at version ``before`` and what ``staged`` says came and went.

    They have the same rows as by :func:`replace_parts` of the parts that have changed. But whole directories are
    replaced: a transaction can do that which looks at nothing else, and tells what has changed.
    """

    plan: ViewdfPlan
    staged: str
    periods: Sequence[date]
    before: int

    def statement(self, head: NextHead) -> exp.Insert:
        """The statement for where there are no transactions."""
        plan = self.plan
        rows = as_stored(plan, [(plan.top, self._after())])
        query = lay_out_rows(plan, [plan.top], with_head(plan, rows, head), is_small=True)
        where = exp.or_(is_new(head), exp.paren(self.replaced), copy=False)
        return exp.Insert(this=table(plan.layout.relation), expression=query, where=where)

    def told(self, head: NextHead) -> Query:
        """The rows that are written, and those of the change feed, which have a change type."""
        plan, kind = self.plan, FORMAT.change_type
        none, count = as_type(exp.Null(), "string"), exp.column(COUNT)
        every: list[exp.Query] = []
        for type_, rows in (
            (none, self._after()),
            (exp.Literal.string(kind.came[0]), self._moved(count)),
            (exp.Literal.string(kind.went[0]), self._moved(exp.Neg(this=count.copy()))),
        ):
            laid = as_stored(plan, [(plan.top, rows)])
            assert isinstance(laid, exp.Select)
            every.append(laid.select(exp.alias_(type_.copy(), kind.name), copy=False))
        every.append(head_row(plan, head).select(exp.alias_(none.copy(), kind.name), copy=False))
        return lay_out_rows(plan, [plan.top], union_all(every), is_small=True, is_told=True)

    @property
    def replaced(self) -> Condition:
        """The rows of these periods: a condition on directories."""
        return exp.and_(of_view(self.plan, self.plan.top), self._in_periods, copy=False)

    @property
    def _in_periods(self) -> exp.In:
        places = [partition_of(period) for period in self.periods]
        return exp.In(this=exp.column(PARTITION), expressions=places)

    def _moved(self, times: exp.Expr) -> exp.Subquery:
        return _repeated(self.plan, table(self.staged), times).subquery("moved", copy=False)

    def _after(self) -> exp.Subquery:
        """What these periods have then."""
        plan = self.plan
        own = stored(plan, plan.top, self.before, self._in_periods)
        was = exp.select(*_columns(plan), exp.alias_(whole(1), COUNT), copy=False).from_(own, copy=False)
        moved = exp.select(*_columns(plan), exp.column(COUNT), copy=False).from_(
            table(self.staged), copy=False
        )
        added = _added_up(plan, exp.union(was, moved, distinct=False, copy=False), (COUNT,))
        rows = _repeated(plan, added.subquery("added", copy=False), exp.column(COUNT))
        return rows.subquery("after", copy=False)


def _columns(plan: ViewdfPlan) -> list[exp.Expr]:
    return [*(column_ast("", k.name) for k in plan.root.keys), exp.column(PARTITION)]


def _added_up(plan: ViewdfPlan, rows: exp.Query, counts: Sequence[str]) -> exp.Select:
    sums = (exp.alias_(exp.Sum(this=exp.column(name)), name) for name in counts)
    query = exp.select(*_columns(plan), *sums, copy=False).from_(
        rows.subquery("both", copy=False), copy=False
    )
    return query.group_by(*_columns(plan), copy=False)


def _repeated(plan: ViewdfPlan, source: exp.Expr, times: exp.Expr) -> exp.Select:
    """The rows of ``source`` without their counts, each so many times; none of those with fewer than one."""
    some = exp.GT(this=times.copy(), expression=whole(0))
    sequence = exp.Anonymous(this="SEQUENCE", expressions=[as_type(whole(1), "bigint"), times])
    generator = exp.Anonymous(this="EXPLODE", expressions=[sequence])
    copies = exp.TableAlias(this=identifier("copies"), columns=[identifier("copy")])
    rows = exp.select("*", copy=False).from_(source, copy=False).where(some, copy=False)
    query = exp.select(*_columns(plan), copy=False).from_(rows.subquery("counted", copy=False), copy=False)
    return query.lateral(exp.Lateral(this=generator, view=True, alias=copies), copy=False)
