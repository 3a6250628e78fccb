"""A query captures the net change of an input: the columns that the plan reads, and a signed multiplicity.

Net means grouped over those columns: a row that is rewritten unchanged, or changed only in columns that the model
does not read, cancels out (``HAVING SUM(sign) <> 0``). Rows that the model's filters never let through are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import as_type, column_ast, identifier
from fivm_dbt.naming import COUNT, SIGN
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.added import at_delta, before_and_after
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.near_changes import times_by_day
from fivm_dbt.spark.pieces import table, union_all
from fivm_dbt.spark.reads import in_partitions, presented, read_version
from fivm_dbt.steps.binding import Binding, BoundInput, staged_state


def change_query(plan: Plan, bound: BoundInput) -> exp.Select:
    """The net change of an input by its bound capture."""
    item = plan.input(bound.name)
    if bound.capture == "change feed":
        assert bound.old is not None
        return net_change_of(item, bound.old, bound.new)
    new = _signed(item, read_version(plan, bound.name, bound.new, "new"), 1)
    if bound.capture == "snapshot":
        assert bound.snapshot is not None
        old_source: exp.Expr = FORMAT.pinned(plan.snapshot_table(bound.name), bound.snapshot)
    else:
        assert bound.old is not None
        old_source = read_version(plan, bound.name, bound.old, "old")
    return _net(item, exp.union(new, _signed(item, old_source, -1), distinct=False))


def net_change_of(item: PlanInput, old: int, new: int) -> exp.Select:
    """The net change of an input between two versions, by its change feed."""
    return _net(item, _feed(item, old, new))


def state_change_query(plan: Plan, view: View, binding: Binding) -> exp.Select:
    """The change of an inner view whose components are added up, from its state and its staged delta.

    Of the keys in the delta: what they show with it, less what they showed before.
    """
    partitions = binding.partitions(staged_state(plan, view), view.name)
    where = None if partitions is None else in_partitions("", [p.ast() for p in partitions])
    own = at_delta(plan, view, binding.version_before, where, has_tail=view.name in binding.tails)
    rows = before_and_after(plan, view, own, is_small=view.name in binding.small).subquery(
        "state", copy=False
    )
    sign = exp.alias_(exp.column(SIGN), COUNT)
    return _net(view.as_input, presented(view.presentation, rows).select(sign, copy=False))


def feed_query(plan: Plan, bound: BoundInput, column: str) -> exp.Query:
    """A column of the change feed of an input, row by row: what is rewritten unchanged comes and goes in it."""
    assert bound.old is not None
    item = plan.input(bound.name)
    only = tuple(c for c in item.columns if c.name.lower() == column.lower())
    return _feed(replace(item, columns=only), bound.old, bound.new)


def snapshot_query(plan: Plan, bound: BoundInput) -> exp.Select:
    """What the own snapshot of an input holds after this refresh: the columns read, at the new version."""
    item = plan.input(bound.name)
    return exp.select(*_columns(item)).from_(read_version(plan, bound.name, bound.new, "new"))


def _columns(item: PlanInput) -> list[exp.Expr]:
    return [column_ast("", c.name) for c in item.columns] or [exp.alias_(exp.Literal.number(1), "one")]


def _feed(item: PlanInput, old: int, new: int) -> exp.Query:
    """Rows of the change feed with their sign; of a fivm model, its presentation over its root's change feed."""
    kind = FORMAT.change_type
    arrived = exp.In(this=exp.column(kind.name), expressions=[exp.Literal.string(t) for t in kind.came])
    sign = exp.Case(
        ifs=[exp.If(this=arrived, true=exp.Literal.number(1))], default=exp.Neg(this=exp.Literal.number(1))
    )
    signed = exp.alias_(sign, COUNT)
    presentation = item.relation.presentation
    if presentation is None:
        return _seen(item, exp.select(*_columns(item), signed).from_(FORMAT.changes(item.name, old, new)))
    rows = presented(presentation, FORMAT.changes(presentation.root, old, new)).select(signed)
    if not item.conditions:
        return rows
    return _seen(item, exp.select("*").from_(rows.subquery(identifier("shown"))))


def _signed(item: PlanInput, source: exp.Expr, sign: int) -> exp.Select:
    number: exp.Expr = exp.Literal.number(1)
    value = number if sign > 0 else exp.Neg(this=number)
    return _seen(item, exp.select(*_columns(item), exp.alias_(value, COUNT)).from_(source))


def _seen(item: PlanInput, rows: exp.Select) -> exp.Select:
    """The rows of an input that the plan looks at at all."""
    return rows.where(*(p.ast() for p in item.conditions)) if item.conditions else rows


def _net(item: PlanInput, rows: exp.Query) -> exp.Select:
    total = exp.Sum(this=exp.column(COUNT))
    keys = [column_ast("", c.name) for c in item.columns]
    query = exp.select(*(k.copy() for k in keys), exp.alias_(total.copy(), COUNT))
    query = query.from_(rows.subquery(identifier("change")))
    if keys:
        query = query.group_by(*keys)
    return query.having(exp.NEQ(this=total, expression=exp.Literal.number(0)))


def change_summary(staged: str, times: Sequence[tuple[str, SparkType]] = ()) -> exp.Query:
    """How many rows of a staged change arrived and how many went, duplicates counted.

    With ``times``, columns of the change, in one answer: rows ``0, arrived, gone``, and for the n-th of them rows
    ``n, first, last``, one of each day (:mod:`fivm_dbt.spark.near_changes`).
    """
    summary = _summary(staged)
    if not times:
        return summary
    texts = [exp.alias_(as_type(s.unalias(), "string"), s.alias) for s in summary.selects]
    numbered = summary.select(exp.alias_(exp.Literal.number(0), "number"), *texts, append=False)
    return union_all([numbered, *times_by_day(staged, times)])


def _summary(staged: str) -> exp.Select:
    return exp.select(*change_counts()).from_(table(staged))


def change_counts() -> list[exp.Expr]:
    """How many rows of a change arrived, and how many went: two sums over it."""
    count = exp.column(COUNT)
    zero = exp.Literal.number(0)
    came = exp.Greatest(this=count.copy(), expressions=[zero.copy()])
    gone = exp.Greatest(this=exp.Neg(this=count.copy()), expressions=[zero.copy()])
    sums = [exp.Coalesce(this=exp.Sum(this=value), expressions=[zero.copy()]) for value in (came, gone)]
    return [exp.alias_(sums[0], "inserted"), exp.alias_(sums[1], "deleted")]
