"""``window(ts, length, slide, start)`` gives each row once for every window that it is in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, constant_of
from fivm_dbt.testing.interpreter.scope import Column, Context, Env, Expression, Relation
from fivm_dbt.testing.interpreter.types import NTZ, TIMESTAMP, struct
from fivm_dbt.testing.interpreter.values import Row

if TYPE_CHECKING:
    from fivm_dbt.testing.interpreter.queries import Relations

_EPOCH = datetime(1970, 1, 1)
_COLUMNS = {"WINDOW": "window", "SESSION_WINDOW": "session_window"}
_UNITS = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}


def with_time_windows(
    node: exp.Select, source: Relation, outer: Context | None, relations: Relations
) -> tuple[exp.Select, Relation]:
    """A SELECT over a column in the place of the function, and rows that have it.

    Of ``session_window`` the column is the session of a row alone; :mod:`groups` puts those that meet together.
    """
    calls = [c for c in node.find_all(exp.Anonymous) if c.this in _COLUMNS and c.parent_select is node]
    if not calls:
        return node, source
    if len({c.sql() for c in calls}) > 1:
        raise NotUnderstood("two different time windows", calls[0])
    call = calls[0]
    context = Context(source.columns, outer, relations)
    time = compile_expression(call.expressions[0], context)
    if time.type not in (TIMESTAMP, NTZ):
        raise NotUnderstood(f"a window of {time.type}", call)
    lengths = [length_of(compile_expression(a, context), a) for a in call.expressions[1:]]
    copy = node.copy()
    for found in list(copy.find_all(exp.Anonymous)):
        if found.this == call.this and found.parent_select is copy:
            found.replace(exp.Column(this=exp.to_identifier(_COLUMNS[call.this])))
    type_ = struct(("start", time.type), ("end", time.type))
    columns = (*source.columns, Column(_COLUMNS[call.this], type_))

    def rows(env: Env | None) -> list[Row]:
        found = []
        for row in source.rows(env):
            at = time.of(Env(row, env))
            if at is not None:
                found += [(*row, w) for w in _windows(call.this, at, lengths)]
        return found

    return copy, Relation(columns, rows)


def _windows(name: str, at: datetime, lengths: list[timedelta]) -> list[tuple[datetime, datetime]]:
    """The windows that a moment is in."""
    if name == "SESSION_WINDOW":
        return [(at, at + lengths[0])]
    length = lengths[0]
    slide = lengths[1] if len(lengths) > 1 else length
    start = lengths[2] if len(lengths) > 2 else timedelta(0)
    begin = at - (at - _EPOCH - start) % slide
    found = []
    while begin + length > at:
        found.append((begin, begin + length))
        begin -= slide
    return found


def length_of(expression: Expression, node: exp.Expr) -> timedelta:
    """A length written as an interval's text."""
    value = constant_of(expression, node)
    if isinstance(value, timedelta):
        return value
    words = str(value).lower().removeprefix("interval").split()
    if len(words) % 2 or not words:
        raise NotUnderstood(f"length {value}", node)
    total = timedelta(0)
    for number, unit in zip(words[::2], words[1::2], strict=True):
        if unit.rstrip("s") not in _UNITS:
            raise NotUnderstood(f"length {value}", node)
        total += timedelta(seconds=int(number) * _UNITS[unit.rstrip("s")])
    return total
