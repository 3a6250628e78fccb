"""One statement adds the change of a part to all later parts of a model that only adds up.

With the part's rows before and after, by key: its change d = after − before is that of every later part too, which has
all keys of the part. A key that has gone may be in later parts for other rows, or not; a sum that has become NULL as
well: then the later parts are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.features.viewdf.plan.model import Cumulative, ViewdfPlan
from fivm_dbt.features.viewdf.spark.queries import named_parts
from fivm_dbt.ir.scalar import as_type, cast_ast, column_ast, identifier
from fivm_dbt.naming import PARTITION, VIEW
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.spark.heads import HEAD_COLUMNS
from fivm_dbt.spark.part_time import in_parts, whole
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.states import as_stored, of_view, stored, with_head

_HAD, _HAS = "__fivm_had", "__fivm_has"


def _names(plan: ViewdfPlan, positions: Sequence[int]) -> list[str]:
    return [plan.root.keys[p].name for p in positions]


def change_of_part(plan: ViewdfPlan, of: Cumulative, part: int, before: int, after: int) -> exp.Select:
    """By key what a part was and is, those that differ, by the versions before and after it was written."""
    keys, sums = _names(plan, of.keys), _names(plan, of.sums)
    where = in_parts(exp.column(PART_TIMESTAMP), TIMESTAMP, plan.parts.length, Intervals.of((part, part)))

    def side(version: int, *, is_new: bool) -> exp.Select:
        shown: list[exp.Expr] = [column_ast("", k) for k in keys]
        shown += [exp.alias_(whole(int(not is_new)), _HAD), exp.alias_(whole(int(is_new)), _HAS)]
        for name in sums:
            none = cast_ast(exp.Null(), _type(plan, name))
            shown.append(exp.alias_(none if is_new else column_ast("", name), _old(name)))
            shown.append(exp.alias_(column_ast("", name) if is_new else none.copy(), _new(name)))
        return exp.select(*shown).from_(stored(plan, plan.top, version, where), copy=False)

    both = exp.union(side(before, is_new=False), side(after, is_new=True), distinct=False, copy=False)
    columns = [_HAD, _HAS, *(n for s in sums for n in (_old(s), _new(s)))]
    totals = [exp.alias_(exp.Max(this=exp.column(identifier(c))), identifier(c)) for c in columns]
    grouped = exp.select(*(column_ast("", k) for k in keys), *totals)
    grouped = grouped.from_(both.subquery("both", copy=False), copy=False)
    grouped = grouped.group_by(*(column_ast("", k) for k in keys), copy=False)
    differ = [exp.NEQ(this=exp.column(_HAD), expression=exp.column(_HAS))]
    distinct = [
        exp.NullSafeNEQ(this=exp.column(identifier(_old(s))), expression=exp.column(identifier(_new(s))))
        for s in sums
    ]
    query = exp.select("*").from_(grouped.subquery("grouped", copy=False), copy=False)
    return query.where(exp.or_(*differ, *distinct), copy=False)


def uncertain_changes(plan: ViewdfPlan, of: Cumulative, staged: str) -> exp.Select:
    """How many changes of keys do not tell what becomes of later parts."""
    sums = _names(plan, of.sums)
    old, new = ([exp.column(identifier(f(s))) for s in sums] for f in (_old, _new))
    zero = whole(0)
    gone = exp.EQ(this=exp.column(_HAS), expression=zero.copy())
    lost = [
        exp.and_(o.is_(exp.null()).not_(), n.is_(exp.null()), copy=False)
        for o, n in zip(old, new, strict=True)
    ]
    nothing = [
        exp.EQ(this=exp.Coalesce(this=n.copy(), expressions=[zero.copy()]), expression=zero.copy())
        for n in new
    ]
    came = exp.EQ(this=exp.column(_HAD), expression=zero.copy())
    where = exp.or_(gone, *lost, exp.and_(came, *nothing, copy=False), copy=False)
    return (
        exp.select(exp.alias_(exp.Count(this=exp.Star()), "uncertain"))
        .from_(table(staged))
        .where(where, copy=False)
    )


def shift_parts(plan: ViewdfPlan, of: Cumulative, staged: str, later: Intervals, head: NextHead) -> exp.Merge:
    """Add a part's change to later parts. The head is a new row: those of before say what they have recorded."""
    source = with_head(plan, as_stored(plan, [(plan.top, _shifted(plan, of, staged, later))]), head)
    return exp.Merge(
        this=table(plan.layout.relation).as_("target", copy=False),
        using=source.subquery("delta", copy=False),
        on=_same_row(plan, of, later),
        whens=exp.Whens(expressions=_branches(plan, of)),
    )


def _shifted(plan: ViewdfPlan, of: Cumulative, staged: str, later: Intervals) -> exp.Expr:
    """What is added to each of the later parts."""
    columns: list[exp.Expr] = [column_ast("change", k) for k in _names(plan, of.keys)]
    for name in _names(plan, of.sums):
        old = exp.Coalesce(this=column_ast("change", _old(name)), expressions=[whole(0)])
        columns.append(
            exp.alias_(exp.Sub(this=column_ast("change", _new(name)), expression=old), identifier(name))
        )
    shown: list[exp.Expr] = [*columns, column_ast("named", PART_TIMESTAMP), column_ast("named", PARTITION)]
    rows = exp.select(*shown, copy=False).from_(table(staged).as_("change", copy=False), copy=False)
    return rows.join(named_parts(plan, later), join_type="cross", copy=False).subquery("shifted", copy=False)


def _same_row(plan: ViewdfPlan, of: Cumulative, later: Intervals) -> exp.Expr:
    """Whether a row of the table is the one that is added to."""
    in_later = in_parts(column_ast("target", PART_TIMESTAMP), TIMESTAMP, plan.parts.length, later)
    tests: list[exp.Expr] = [
        of_view(plan, plan.top, "target"),
        exp.paren(in_later),
        exp.EQ(this=column_ast("target", VIEW), expression=column_ast("delta", VIEW)),
    ]
    tests += [
        exp.NullSafeEQ(this=column_ast("target", name), expression=column_ast("delta", name))
        for name in (PART_TIMESTAMP, *_names(plan, of.keys))
    ]
    return exp.and_(*tests, copy=False)


def _branches(plan: ViewdfPlan, of: Cumulative) -> list[exp.When]:
    """What is done with a row that is there, or is not, as the head never is."""
    sums = _names(plan, of.sums)
    assignments = [exp.EQ(this=exp.column(identifier(s)), expression=_added(s, _type(plan, s))) for s in sums]
    names = [*(k.name for k in plan.root.keys), *HEAD_COLUMNS, VIEW, PARTITION]
    insert = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(identifier(n)) for n in names]),
        expression=exp.Tuple(expressions=[column_ast("delta", n) for n in names]),
    )
    return [
        exp.When(matched=True, then=exp.Update(expressions=assignments)),
        exp.When(matched=False, then=insert),
    ]


def _type(plan: ViewdfPlan, name: str) -> SparkType:
    return next(k.type for k in plan.root.keys if k.name == name)


def _added(name: str, type_: SparkType) -> exp.Expr:
    """The sum of two sums, either of which may be over nothing but NULLs."""
    target, source = column_ast("target", name), column_ast("delta", name)
    total = as_type(exp.Add(this=target.copy(), expression=source.copy()), type_.text)
    no_target = exp.If(this=target.is_(exp.null()), true=source)
    no_source = exp.If(this=column_ast("delta", name).is_(exp.null()), true=target.copy())
    return exp.Case(ifs=[no_target, no_source], default=total)


def _old(name: str) -> str:
    return f"{name}__fivm_old"


def _new(name: str) -> str:
    return f"{name}__fivm_new"
