"""SEQUENCE gives numbers, days or times at equal distances."""

from __future__ import annotations

from datetime import timedelta

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import unified
from fivm_dbt.testing.interpreter.functions import function
from fivm_dbt.testing.interpreter.scope import Expression, strict
from fivm_dbt.testing.interpreter.types import DATE, DAYTIME, YEARMONTH, array
from fivm_dbt.testing.interpreter.values import Value, as_timestamp, months_added


class NoSuchSequence(ArithmeticError):
    """A sequence whose step leads away from its end, at which Spark stops."""


@function("SEQUENCE")
def sequence(arguments: list[Expression], node: exp.Expr) -> Expression:
    """Without a step by ones or days, in the direction of the end."""
    first = arguments[0].type
    if first.is_integral:
        type_, values = unified(arguments, node)

        def numbers(start: int, end: int, step: int | None = None) -> Value:
            by = step if step is not None else 1 if start <= end else -1
            _check_sequence(start, end, by)
            return tuple(range(start, end + (1 if by > 0 else -1), by)) if by else (start,)

        return strict(array(type_), numbers, *values)
    has_interval = len(arguments) < 3 or arguments[2].type in (DAYTIME, YEARMONTH)
    if not first.is_time or arguments[1].type != first or not has_interval:
        raise NotUnderstood("SEQUENCE of this kind", node)

    def times(start: Value, end: Value, step: Value = None) -> Value:
        if step is None:
            step = timedelta(days=1 if start <= end else -1)
        nothing = 0 if isinstance(step, int) else timedelta(0)
        _check_sequence(start, end, (step > nothing) - (step < nothing))
        found: list[Value] = []
        while True:
            value = (
                months_added(start, len(found) * step)
                if isinstance(step, int)
                else as_timestamp(start) + len(found) * step
            )
            value = value.date() if first == DATE and hasattr(value, "date") else value
            if (value > end) if step > nothing else (value < end):
                return tuple(found)
            found.append(value)
            if step == nothing:
                return tuple(found)

    return strict(array(first), times, *arguments)


def _check_sequence(start: Value, end: Value, direction: int) -> None:
    if not (start == end or (start < end and direction > 0) or (start > end and direction < 0)):
        raise NoSuchSequence(f"Illegal sequence boundaries: {start} to {end}")
