"""Window functions find sessions: the time before, the start since the last gap, the last time."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.ir.scalar import as_type, column_ast, identifier
from fivm_dbt.ir.sessions import SESSION_LAST, SESSION_START, SESSION_UNTIL, Sessions
from fivm_dbt.naming import PREFIX
from fivm_dbt.spark.select import WRITERS, Reader, select_columns

_AT, _BEFORE = f"{PREFIX}at", f"{PREFIX}before"


@WRITERS.add(Sessions)
def select_sessions(node: Sessions, reader: Reader) -> exp.Select:
    """The rows with their sessions.

    A session starts at a row whose predecessor, if there is any, is more than a gap ago; the latest start up to a row
    is that of its session, and the latest row with that start ends it.
    """
    keys = [f"{PREFIX}key_{i + 1}" for i in range(len(node.keys))]
    columns = [exp.alias_(i.value.ast(), identifier(i.name)) for i in node.items]
    columns += [exp.alias_(k.value.ast(), name) for k, name in zip(node.keys, keys, strict=True)]
    columns += [exp.alias_(node.at.ast(), _AT)]
    partition = [k.value.ast() for k in node.keys]
    before = exp.Anonymous(this="LAG", expressions=[node.at.ast()])
    columns += [exp.alias_(_over(before, partition, node.at.ast()), _BEFORE)]
    inner = select_columns(columns, node.input, reader)

    kept = [column_ast("", i.name) for i in node.items]
    named: list[exp.Expr] = [column_ast("", name) for name in keys]
    at = column_ast("", _AT)
    since = exp.Add(this=column_ast("", _BEFORE), expression=exp.Literal.number(node.gap))
    starts = exp.or_(
        exp.Is(this=column_ast("", _BEFORE), expression=exp.Null()), exp.GT(this=at.copy(), expression=since)
    )
    start = exp.Max(this=exp.Case(ifs=[exp.If(this=starts, true=at.copy())]))
    started = exp.select(*_copies(kept), *_copies(named), at.copy(), copy=False)
    started = started.select(exp.alias_(_over(start, named, at.copy()), SESSION_START), copy=False)
    started = started.from_(inner.subquery("ordered_rows", copy=False), copy=False)

    bounds = [exp.alias_(_BOUNDS[name](node.gap, named), name) for name in node.bounds]
    ended = exp.select(*_copies(kept), *bounds, copy=False)
    return ended.from_(started.subquery("started_rows", copy=False), copy=False)


def _start(gap: int, keys: list[exp.Expr]) -> exp.Expr:
    return column_ast("", SESSION_START)


def _last(gap: int, keys: list[exp.Expr]) -> exp.Expr:
    """The end of the session, of its last rows."""
    at = column_ast("", _AT)
    end = exp.Add(this=at.copy(), expression=exp.Literal.number(gap))
    return exp.Case(ifs=[exp.If(this=exp.EQ(this=at, expression=_last_time(keys)), true=end)])


def _until(gap: int, keys: list[exp.Expr]) -> exp.Expr:
    """``start + gap · 2^n``, with n the binary digits of ``⌊(end − start − 1) / gap⌋``."""
    start = column_ast("", SESSION_START)
    end = exp.Add(this=_last_time(keys), expression=exp.Literal.number(gap - 1))
    length = exp.paren(exp.Sub(this=end, expression=start))
    digits = exp.Length(
        this=exp.Anonymous(
            this="BIN", expressions=[exp.IntDiv(this=length, expression=exp.Literal.number(gap))]
        )
    )
    one_gap = as_type(exp.Literal.number(gap), "bigint")
    gaps = exp.Anonymous(this="SHIFTLEFT", expressions=[one_gap, digits])
    return exp.Add(this=start.copy(), expression=gaps)


def _last_time(keys: list[exp.Expr]) -> exp.Expr:
    return _over(exp.Max(this=column_ast("", _AT)), [*keys, column_ast("", SESSION_START)], None)


_BOUNDS = {SESSION_START: _start, SESSION_LAST: _last, SESSION_UNTIL: _until}


def _copies(columns: list[exp.Column] | list[exp.Expr]) -> list[exp.Expr]:
    return [c.copy() for c in columns]


def _over(function: exp.Expr, partition: list[exp.Expr], order: exp.Expr | None) -> exp.Window:
    by = exp.Order(expressions=[exp.Ordered(this=order, nulls_first=True)]) if order is not None else None
    return exp.Window(this=function, partition_by=[p.copy() for p in partition], order=by, over="OVER")
