"""A write raises errors before anything is committed."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.ir.scalar import raise_error
from fivm_dbt.plan.model.state import StateTable

NEGATIVE = "FIVM401"
"""A multiplicity would be below zero."""

OVERFLOW = "FIVM402"
"""A decimal sum has overflowed."""


def unless(alarm: exp.Expr, value: exp.Expr, type_: str, message: str) -> exp.Expr:
    """``value``, but an error with ``message`` where ``alarm`` holds."""
    return exp.Case(ifs=[exp.If(this=alarm, true=raise_error(message, type_))], default=value)


def overflowed(state: StateTable) -> str:
    """The alarm for a decimal sum that has overflowed."""
    return f"{OVERFLOW} {state.relation}: a decimal sum overflowed"
