"""Each row of a staged delta has a place in the table of all states."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import PARTITION
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.partition_text import number_text
from fivm_dbt.spark.reads import Bounds, in_bounds, in_partitions
from fivm_dbt.spark.states import of_view, renamed

TOUCHED = exp.Placeholder(this="touched")
"""Stands for the touched partitions in statements that are shown."""


@dataclass(frozen=True)
class Place:
    """Where rows of a staged delta go: some partitions of a view, as literals, and in them within ``bounds``.

    Too many partitions to be written down are None.
    """

    view: View
    partitions: tuple[exp.Expr, ...] | None
    bounds: Bounds | None = None
    is_staged: bool = True
    """Whether the view has a staged delta: else what it has in the tail is folded in, and nothing added."""

    def condition(self, plan: Plan, alias: str = "") -> exp.Expr:
        """Whether a row of the table, called ``alias``, lies there."""
        within = (renamed(plan, self.view, test) for test in self._within(alias))
        return exp.and_(of_view(plan, self.view, alias), *within, copy=False)

    def of_own(self) -> exp.Expr | None:
        """The same of a row of its own state or delta."""
        tests = self._within("")
        return exp.and_(*tests, copy=False) if tests else None

    def _within(self, alias: str) -> list[exp.Expr]:
        tests = [] if self.partitions is None else [in_partitions(alias, self.partitions)]
        return tests if self.bounds is None else [*tests, in_bounds(alias, self.bounds)]


@dataclass(frozen=True)
class Closed:
    """The partitions of a view that no change comes to any more: those before the ``first_open`` one."""

    view: View
    first_open: int

    def condition(self, plan: Plan) -> exp.Expr:
        """Whether a row of the table lies there: texts of numbers sort as they do."""
        first = exp.Literal.string(number_text(self.first_open))
        is_before = exp.LT(this=column_ast("", PARTITION), expression=first)
        return exp.and_(of_view(plan, self.view), is_before, copy=False)
