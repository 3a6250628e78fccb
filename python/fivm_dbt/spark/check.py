"""Validation of a new plan: every kind of statement that it can emit, with all inputs changed at once."""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.binding import Binding, BoundClock, BoundInput, staged_input, staged_root
from fivm_dbt.plan.plan import Plan
from fivm_dbt.spark.capture import change_query
from fivm_dbt.spark.state import build_query, delta_query, merge, touched_query
from fivm_dbt.spark.validate import validate

EXAMPLE_TIMES = BoundClock(Clock.at(datetime(2024, 5, 1, 12)), Clock.at(datetime(2024, 5, 2, 12)))
"""The times of statements that are only checked or shown."""


def check_statements(plan: Plan) -> None:
    """Raise FIVM901 where a statement of ``plan`` would be unsafe, before any has run."""
    staged = [staged_root(plan), *(staged_input(plan, i.name) for i in plan.inputs)]
    updatable = [i.name for i in plan.inputs if not i.is_static]
    statements: list[exp.Expr] = [merge(plan, [exp.Literal.number(1)]), touched_query(plan)]
    if plan.terms:
        # Whatever changes, a refresh runs some of these terms: a subset of safe reads is safe.
        statements.append(delta_query(plan, _example(plan, frozenset(updatable))))
    binding = _example(plan, frozenset())
    statements.append(build_query(plan, binding))
    statements += [change_query(plan, b) for b in binding.inputs]
    for statement in statements:
        validate(statement.sql(dialect="spark"), staged)


def _example(plan: Plan, changed: frozenset[str]) -> Binding:
    """A binding with versions 1 and 2 everywhere."""
    inputs = tuple(BoundInput(i.name, "change feed", 1, 2) for i in plan.inputs)
    return Binding(inputs, changed, 4, 1, EXAMPLE_TIMES if plan.clock_kinds else None)
