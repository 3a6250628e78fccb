"""Statements of viewdf models tell what changed of parts, and write parts (ViewDF, section 4).

A part is a range of time, so a condition on parts is one on the time column, with literals by which Delta finds files.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from sqlglot import exp

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.features.viewdf.plan.model import PART, PartInput, ViewdfPlan
from fivm_dbt.features.viewdf.spark.queries import MAX_RANGES, partition_of
from fivm_dbt.ir.scalar import column_ast, identifier
from fivm_dbt.naming import COUNT, HEAD, PARTITION, VIEW
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.heads import head_row, is_in_tail
from fivm_dbt.spark.part_time import FEW_RANGES, in_numbers, in_parts, number_of, whole
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.properties import state_properties
from fivm_dbt.spark.state import create_table
from fivm_dbt.spark.states import as_stored, lay_out_rows, of_view, stored, with_head

PARTS_PER_FILE = 64
"""Parts that are written together go into files of so many."""

Statement = Callable[[NextHead], exp.Expr]
"""A statement that writes the table, given the head that it sets."""

# What changed


def input_parts_query(
    item: PartInput, rows: exp.Expr, *, is_change: bool, has_null: bool = False
) -> exp.Select:
    """Per part of an input how many rows came and went, of a change or of all its rows.

    Rows whose time is NULL are in no part; with ``has_null`` they are told too, of part NULL.
    """
    number = number_of(exp.column(identifier(item.column)), item.type, item.own)
    count: exp.Expr = exp.column(COUNT) if is_change else whole(1)
    each = exp.select(exp.alias_(number, PART), exp.alias_(count, "change")).from_(rows, copy=False)
    zero = whole(0)
    change = exp.column("change")
    came = exp.Sum(this=exp.Greatest(this=change.copy(), expressions=[zero.copy()]))
    gone = exp.Sum(this=exp.Greatest(this=exp.Neg(this=change.copy()), expressions=[zero.copy()]))
    query = exp.select(exp.column(PART), exp.alias_(came, "came"), exp.alias_(gone, "gone"))
    query = query.from_(each.subquery("each", copy=False), copy=False)
    if not has_null:
        query = query.where(exp.column(PART).is_(exp.null()).not_(), copy=False)
    return query.group_by(exp.column(PART), copy=False).order_by(exp.column(PART), copy=False)


def islands_query(parts: exp.Query) -> exp.Select:
    """The parts of :func:`input_parts_query` as ranges: first and last of each run without a gap."""
    order = exp.Order(expressions=[exp.Ordered(this=exp.column(PART))])
    position = exp.Window(this=exp.RowNumber(), order=order)
    island = exp.Sub(this=exp.column(PART), expression=position)
    each = exp.select(exp.column(PART), exp.alias_(island, "island")).from_(
        parts.subquery("parts", copy=False)
    )
    ends = [
        exp.alias_(exp.Min(this=exp.column(PART)), "low"),
        exp.alias_(exp.Max(this=exp.column(PART)), "high"),
    ]
    return exp.select(*ends).from_(each.subquery("each")).group_by(exp.column("island"))


def part_rows(plan: ViewdfPlan, parts: Intervals | None) -> exp.Select:
    """How many rows stored parts have, all of them for None; those without rows are not there."""
    number = number_of(exp.column(PART_TIMESTAMP), TIMESTAMP, plan.parts.length)
    where = None if parts is None else in_these(plan, parts.at_most(MAX_RANGES))
    own = stored(plan, plan.top, None, where)
    each = exp.select(exp.alias_(number, PART)).from_(own, copy=False)
    query = exp.select(exp.column(PART), exp.alias_(exp.Count(this=exp.Star()), "rows"))
    return query.from_(each.subquery("each", copy=False), copy=False).group_by(exp.column(PART), copy=False)


def in_these(plan: ViewdfPlan, parts: Intervals) -> exp.Expr:
    """The rows of these parts of the model."""
    return in_parts(exp.column(PART_TIMESTAMP), TIMESTAMP, plan.parts.length, parts)


def reading_these(plan: ViewdfPlan, parts: Intervals) -> exp.Expr:
    """The same as a condition on rows that are read: a few ranges, by which Delta finds files, and the numbers."""
    ranges = parts.coarser().at_most(FEW_RANGES)
    if ranges == parts:
        return in_these(plan, parts)
    number = number_of(exp.column(PART_TIMESTAMP), TIMESTAMP, plan.parts.length)
    return exp.and_(exp.paren(in_these(plan, ranges)), in_numbers(number, parts), copy=False)


# Writing, each with the head that it sets


def computed(query: exp.Query) -> exp.Expr:
    """What a query gives, as the source of rows that are written."""
    return query.subquery("computed", copy=False)


def create_parts(plan: ViewdfPlan, head: NextHead, *, is_replacing: bool) -> exp.Create:
    """The table without a part."""
    return _create(plan, head_row(plan, head), is_replacing=is_replacing)


def copy_parts(
    plan: ViewdfPlan, built: ViewdfPlan, version: int, gone: Intervals, head: NextHead
) -> exp.Create:
    """Make the state what has been built beside it but for some parts; ``built`` says where that is."""
    where = exp.not_(exp.paren(in_these(plan, gone))) if gone else None
    rows = as_stored(plan, [(plan.top, stored(built, built.top, version, where))])
    return _create(plan, lay_out_rows(plan, [plan.top], with_head(plan, rows, head)), is_replacing=True)


def _create(plan: ViewdfPlan, rows: exp.Query, *, is_replacing: bool) -> exp.Create:
    properties = state_properties(plan)
    return create_table(plan.layout.relation, rows, properties, (VIEW, PARTITION), is_replacing=is_replacing)


def append_parts(plan: ViewdfPlan, source: exp.Expr, parts: Intervals, head: NextHead) -> exp.Insert:
    """Write some parts that are not there from their rows in ``source``: Delta looks for nothing to replace."""
    rows = with_head(plan, _rows_of(plan, source, parts), head)
    return exp.Insert(this=table(plan.layout.relation), expression=rows)


def replace_parts(plan: ViewdfPlan, source: exp.Expr, parts: Intervals, head: NextHead) -> exp.Insert:
    """Write some parts anew from their rows in ``source``."""
    rows = with_head(plan, _rows_of(plan, source, parts), head)
    return exp.Insert(this=table(plan.layout.relation), expression=rows, where=_these_and(head, plan, parts))


def drop_parts(plan: ViewdfPlan, parts: Intervals, head: NextHead) -> exp.Insert:
    """Take parts out of the state."""
    where = _these_and(head, plan, parts)
    return exp.Insert(this=table(plan.layout.relation), expression=head_row(plan, head), where=where)


def _these_and(head: NextHead, plan: ViewdfPlan, parts: Intervals) -> exp.Expr:
    """The rows of some parts, and the head that is written with them; those of before say what they have recorded."""
    own = exp.and_(of_view(plan, plan.top), exp.paren(in_these(plan, parts)), copy=False)
    return exp.or_(is_new(head), own, copy=False)


def is_new(head: NextHead) -> exp.Expr:
    """The rows of this head, and of later ones, of which there are none."""
    is_later = exp.GTE(this=exp.column(HEAD), expression=exp.Literal.number(head.number))
    return exp.and_(is_in_tail(), is_later, copy=False)


def _rows_of(plan: ViewdfPlan, source: exp.Expr, parts: Intervals) -> exp.Query:
    """The rows of these parts in ``source``, as they are stored."""
    columns = [*(column_ast("", k.name) for k in plan.root.keys), exp.column(PARTITION)]
    rows = exp.select(*columns).from_(source, copy=False).where(in_these(plan, parts), copy=False)
    files = -(-len(parts) // PARTS_PER_FILE)
    if files > 1:
        # Neighbours lie together, so that whoever reads some parts later reads few others with them.
        ranges = exp.Anonymous(
            this="REPARTITION_BY_RANGE", expressions=[whole(files), exp.column(PART_TIMESTAMP)]
        )
        rows.set("hint", exp.Hint(expressions=[ranges]))
    return as_stored(plan, [(plan.top, rows.subquery("written", copy=False))])


def compact_periods(plan: ViewdfPlan, before: date) -> exp.Expr:
    """The rows of the parts of periods before a day in as few files as there can be, and so the heads."""
    old = exp.LT(this=exp.column(PARTITION), expression=partition_of(before))
    own = exp.and_(of_view(plan, plan.top), old, copy=False)
    return FORMAT.compacted(plan.layout.relation, exp.or_(is_in_tail(), own, copy=False))
