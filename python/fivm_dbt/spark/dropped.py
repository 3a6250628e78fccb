"""Dropped parts of an input are found in its staged change, and taken out of it (:class:`Retention`)."""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from fivm_dbt.catalog import Column, Relation, Retention
from fivm_dbt.ir.scalar import column_ast, identifier
from fivm_dbt.naming import COUNT
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.part_time import counted, in_parts, instant, number_of, whole
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.reads import read_version


def losing_parts_query(item: PlanInput, staged: str) -> exp.Select:
    """The parts of an input that a staged change takes rows out of, and how many rows it brings there."""
    column, retention = _time(item)
    number = number_of(column_ast("", column.name), column.type, retention.length)
    each = exp.select(exp.alias_(number, "part"), exp.column(COUNT)).from_(table(staged))
    each = each.where(exp.Is(this=column_ast("", column.name), expression=exp.Null()).not_(), copy=False)
    came = exp.Sum(this=exp.Greatest(this=exp.column(COUNT), expressions=[whole(0)]))
    loses = exp.LT(this=exp.Min(this=exp.column(COUNT)), expression=whole(0))
    query = exp.select(exp.column("part"), exp.alias_(came, "came")).from_(each.subquery("each", copy=False))
    return query.group_by(exp.column("part"), copy=False).having(loses, copy=False)


def newest_query(plan: Plan, item: PlanInput, version: int, since: datetime) -> exp.Select:
    """The newest part, NULL where no row is from ``since`` or later; of what a clock shows, as it does in UTC."""
    column, retention = _time(item)
    low = instant(since, column.type)
    where = exp.GTE(this=column_ast("", column.name), expression=low)
    rows = read_version(plan, item.name, version, "newest", where)
    newest = exp.select(exp.alias_(exp.Max(this=column_ast("", column.name)), "newest")).from_(rows)
    number = number_of(exp.column("newest"), column.type, retention.length)
    return exp.select(exp.alias_(number, "part")).from_(newest.subquery("found"))


def rows_left_query(plan: Plan, item: PlanInput, version: int, among: Intervals) -> exp.Select:
    """How many rows the parts ``among`` some have, those that have any."""
    column, retention = _time(item)
    where = in_parts(column_ast("", column.name), column.type, retention.length, among)
    rows = read_version(plan, item.name, version, "left_over", where)
    number = number_of(column_ast("", column.name), column.type, retention.length)
    each = exp.select(exp.alias_(number, "part")).from_(rows)
    query = exp.select(exp.column("part"), exp.alias_(exp.Count(this=exp.Star()), "n"))
    return query.from_(each.subquery("each", copy=False)).group_by(exp.column("part"), copy=False)


def without_losses(item: PlanInput, change: exp.Select, parts: Intervals) -> exp.Select:
    """A net change without the rows that some parts lose."""
    column, retention = _time(item)
    is_in = in_parts(column_ast("", column.name), column.type, retention.length, parts)
    shown = [*(column_ast("", c.name) for c in item.columns), exp.column(COUNT)]
    comes = exp.GT(this=exp.column(COUNT), expression=whole(0))
    is_null = exp.Is(this=column_ast("", column.name), expression=exp.Null())
    kept = exp.or_(comes, is_null, exp.not_(is_in))
    return exp.select(*shown).from_(change.subquery(identifier("whole_change"))).where(kept, copy=False)


def ends_query(relation: Relation, version: int) -> exp.Select:
    """The oldest and the newest part of a relation."""
    column, retention = _column(relation)
    ends = exp.select(
        exp.alias_(exp.Min(this=column_ast("", column.name)), "low"),
        exp.alias_(exp.Max(this=column_ast("", column.name)), "high"),
    ).from_(FORMAT.pinned(relation.name, version))
    numbers = (number_of(exp.column(end), column.type, retention.length) for end in ("low", "high"))
    return exp.select(*numbers).from_(ends.subquery("ends"))


def delete_before(relation: Relation, last: int) -> exp.Delete:
    """Delete the rows of all parts up to the ``last`` one; rows without a time stay."""
    column, retention = _column(relation)
    end = instant(counted(column.type, retention.length).end_of(last), column.type)
    old = exp.LT(this=column_ast("", column.name), expression=end)
    return exp.Delete(this=table(relation.name), where=exp.Where(this=old))


def _time(item: PlanInput) -> tuple[Column, Retention]:
    assert item.retention is not None
    return _column(item.relation)


def _column(relation: Relation) -> tuple[Column, Retention]:
    assert relation.retention is not None
    column = relation.column(relation.retention.column)
    assert column is not None
    return column, relation.retention
