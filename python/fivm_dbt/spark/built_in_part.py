"""A part of each state is built from the inputs, and written in the place of the rows that were there of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import OF
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.heads import COVERED, is_in_tail
from fivm_dbt.spark.near_changes import Range, in_ranges
from fivm_dbt.spark.pieces import Condition, table, union_all
from fivm_dbt.spark.reads import in_partitions
from fivm_dbt.spark.state import build_query
from fivm_dbt.spark.states import as_stored, lay_out_rows, of_view, renamed, tail_rows, with_head
from fivm_dbt.steps.binding import Binding, staged_state


@dataclass(frozen=True)
class Part:
    """The rows of a view's state with the key ``column`` in some ranges, which may be open, and those without one.

    They are whole ``partitions``, of which these are the texts, where it has some.
    """

    view: View
    column: str
    type: SparkType
    ranges: tuple[Range, ...]
    partitions: tuple[str, ...] | None = None

    @property
    def condition(self) -> Condition:
        """Whether a row of the state is one of them."""
        test = in_ranges(self.column, self.type, self.ranges, or_null=True)
        return exp.Boolean(this=True) if test is None else test

    @property
    def in_partitions(self) -> Condition | None:
        """The same of a row that lies in the partitions; None where the part is not whole ones."""
        if self.partitions is None:
            return None
        return in_partitions("", [exp.Literal.string(text) for text in self.partitions])


def part_rows(plan: Plan, part: Part, binding: Binding) -> exp.Select:
    """The rows of a part of a view's state, from scratch. Groups of which not all rows are read are no part of it."""
    built = build_query(plan, part.view, binding).subquery("built", copy=False)
    return exp.select("*").from_(built, copy=False).where(part.condition, copy=False)


def write_parts(
    plan: Plan, parts: Sequence[Part], binding: Binding, staged: Collection[str], head: NextHead
) -> exp.Insert:
    """Write these parts of the states with the head, in the place of what was there, also what had been appended.

    The rows of the views ``staged`` lie so already. Where the parts are partitions, what is replaced are whole files:
    the tail is one, and what stays of it is written again.
    """
    rows: list[tuple[View, exp.Expr]] = [
        (
            part.view,
            table(staged_state(plan, part.view))
            if part.view.name in staged
            else part_rows(plan, part, binding).subquery("part", copy=False),
        )
        for part in parts
    ]
    every = [as_stored(plan, rows)]
    replaced = [is_in_tail(), *(_replaced(plan, part) for part in parts)]
    if all(part.partitions is not None for part in parts):
        left = _left_in_tail(plan, parts, binding)
        every += [as_stored(plan, left, in_tail=True)] if left else []
    elif binding.tails:
        is_head = exp.EQ(this=column_ast("", OF), expression=exp.Literal.string(COVERED))
        replaced[0] = exp.and_(is_in_tail(), is_head, copy=False)
        replaced += [_appended(plan, part) for part in parts if part.view.name in binding.tails]
    query = lay_out_rows(plan, [p.view for p in parts], with_head(plan, union_all(every), head))
    return exp.Insert(
        this=table(plan.layout.relation), expression=query, where=exp.or_(*replaced, copy=False)
    )


def _left_in_tail(plan: Plan, parts: Sequence[Part], binding: Binding) -> list[tuple[View, exp.Expr]]:
    """What has been appended to the views, and is in none of the parts, which are partitions."""
    goes = {part.view.name: part.in_partitions for part in parts}
    found: list[tuple[View, exp.Expr]] = []
    for view in plan.stored:
        if view.name in binding.tails:
            gone = goes.get(view.name)
            stays = None if gone is None else exp.Not(this=gone)
            found.append((view, tail_rows(plan, view, binding.version_before, stays)))
    return found


def _replaced(plan: Plan, part: Part) -> exp.Expr:
    """The rows of a part in the partitions of its view."""
    test = part.in_partitions or exp.paren(renamed(plan, part.view, part.condition))
    return exp.and_(of_view(plan, part.view), test, copy=False)


def _appended(plan: Plan, part: Part) -> exp.Expr:
    """The rows of a part that have been appended, and not folded in."""
    label = exp.Literal.string(plan.layout.label(part.view))
    of_it = exp.EQ(this=column_ast("", OF), expression=label)
    lies = exp.paren(renamed(plan, part.view, part.condition))
    return exp.and_(is_in_tail(), of_it, lies, copy=False)
