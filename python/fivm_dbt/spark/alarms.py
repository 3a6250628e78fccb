"""A write raises errors before anything is committed."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.ir.scalar import never_null, raise_error
from fivm_dbt.plan.model.state import StateTable

NEGATIVE = "FIVM401"
"""A multiplicity would be below zero."""

OVERFLOW = "FIVM402"
"""A decimal sum has overflowed."""


def unless(alarm: exp.Expr, value: exp.Expr, type_: str, message: str) -> exp.Expr:
    """``value``, but an error with ``message`` where ``alarm`` holds."""
    return exp.Case(ifs=[exp.If(this=alarm, true=raise_error(message, type_))], default=value)


def not_overflowed(value: exp.Expr, type_: str, state: StateTable) -> exp.Expr:
    """``value``, a decimal sum, but an error where it is NULL."""
    message = f"{OVERFLOW} {state.relation}: a decimal sum overflowed"
    return never_null(value, message, type_)
