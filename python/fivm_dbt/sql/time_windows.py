"""``window``, ``session_window`` and ``window_time`` form groups of time, as Spark does.

A SELECT has windows of one kind (Spark's own limit). Each row lies in all windows that contain its time: in one where
they do not overlap, else in ``⌈length / slide⌉`` or one less. Windows are counted in microseconds from 1970 in UTC, so
that a day is 24 hours also where clocks change; a row without a time lies in none. What is grouped by is the window's
start, from which its end follows; of a session it is an aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, TIMESTAMP
from fivm_dbt.functions.function import Kind
from fivm_dbt.functions.lookup import is_kind
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.instants import aligned
from fivm_dbt.ir.intervals import microseconds
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Filter
from fivm_dbt.ir.scalar import Scalar, as_type, column_ast
from fivm_dbt.ir.sessions import SESSION_LAST, SESSION_START, SESSION_UNTIL, Sessions
from fivm_dbt.ir.time_windows import WINDOW_START, TimeWindows
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.expressions import check_row_level, qualify, to_scalar, unparenthesized
from fivm_dbt.sql.group_keys import group_keys
from fivm_dbt.sql.outer_scope import CARRIED
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.scope import Scope, Source
from fivm_dbt.sql.typing import known_type
from fivm_dbt.sql.window_bounds import Bounds, last_instant, micros_of, time_of, with_bounds

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


@dataclass(frozen=True)
class TimeWindow:
    """A call taken apart: ``at`` is the time of a row in microseconds, the rest is in microseconds too.

    Its bounds are times without a zone where it ``is_local``.
    """

    name: str
    call: exp.Expr
    at: exp.Expr
    length: int
    slide: int = 0
    offset: int = 0
    is_local: bool = False

    @property
    def is_session(self) -> bool:
        return self.name == "session_window"


def with_time_windows(
    lowering: Lowering, node: exp.Select, scope: Scope, relation: Node
) -> tuple[exp.Select, Scope, Node]:
    """A SELECT with the bounds of windows in place of the calls, over the rows with the windows that they lie in."""
    if not any(is_kind(part, Kind.TIME_WINDOW) for part in _own_parts(node)):
        return node, scope, relation
    window = _the_window(lowering, node, scope)
    is_local = partial(_is_local, lowering, scope)
    if window is None:
        return with_bounds(node, scope, "", None, is_local), scope, relation
    _check_sets(node, window)
    at = Scalar(unparenthesized(qualify(window.at, scope)))
    relation = Filter(relation, (Scalar(exp.Not(this=exp.Is(this=at.ast(), expression=exp.Null()))),))
    if window.is_session:
        bounds, scope, relation = _sessions(
            lowering, node, window=window, at=at, scope=scope, relation=relation
        )
    elif window.slide == window.length:
        bounds = _bounds(aligned(Scalar(window.at), window.slide, window.offset).ast(), window)
    else:
        alias = lowering.alias("time_window")
        relation = TimeWindows.of(relation, alias, at, window.length, window.slide, window.offset)
        scope = _with_source(scope, alias, (WINDOW_START,))
        bounds = _bounds(column_ast(alias, WINDOW_START), window)
    return with_bounds(node, scope, window.name, bounds, is_local), scope, relation


# What is written


def _own_parts(node: exp.Select) -> Iterator[exp.Expr]:
    """The expressions that a SELECT computes over its relation, without those of queries in them."""
    clauses = (node.args.get(key) for key in ("group", "having", "qualify", "order"))
    for part in (
        *node.expressions,
        *(c for c in clauses if c is not None),
        *(node.args.get("windows") or []),
    ):
        yield from part.walk(prune=lambda p: isinstance(p, exp.Query))


def _the_window(lowering: Lowering, node: exp.Select, scope: Scope) -> TimeWindow | None:
    """The one window of a SELECT, which may be written several times."""
    found: dict[tuple[object, ...], TimeWindow] = {}
    for part in _own_parts(node):
        if function_name(part) in ("window", "session_window"):
            window = _read(lowering, part, scope)
            at = Scalar(qualify(window.at, scope))
            found.setdefault((window.name, at, window.length, window.slide, window.offset), window)
    if len(found) > 1:
        second = list(found.values())[1]
        raise unsupported(
            second.call, "a second time window in one SELECT is not Spark SQL", "use a subquery"
        )
    return next(iter(found.values()), None)


def _read(lowering: Lowering, call: exp.Expr, scope: Scope) -> TimeWindow:
    name = function_name(call) or ""
    arguments = list(call.expressions) if isinstance(call, exp.Anonymous) else list(call.iter_expressions())
    most = 2 if name == "session_window" else 4
    if not 2 <= len(arguments) <= most:
        what = f"{name} with {len(arguments)} arguments is not Spark SQL"
        raise unsupported(call, what, "give it a time and a length")
    at, is_local = _micros(lowering, arguments[0], scope)
    length, *rest = (_length(call, a) for a in arguments[1:])
    slide = rest[0] if rest else length
    offset = rest[1] if len(rest) > 1 else 0
    if length <= 0 or slide <= 0 or slide > length or abs(offset) >= slide:
        what = f"{call.sql('spark')}: a length and a slide above zero are expected, the slide no longer than the "
        raise unsupported(call, f"{what}length, and a start within the slide", "correct the lengths")
    return TimeWindow(name, call, at=at, length=length, slide=slide, offset=offset, is_local=is_local)


def _length(call: exp.Expr, node: exp.Expr) -> int:
    value = unparenthesized(node)
    number = Scalar(value.copy()).as_number
    if number is not None:
        return number
    found = microseconds(value.name) if isinstance(value, exp.Literal) and value.is_string else None
    if found is None:
        shown = span_of(node) is not None
        what = f"{node.sql('spark')} is no fixed length of time in {function_name(call)}"
        raise unsupported(node if shown else call, what, "write it as '90 minutes'")
    return found


def _micros(lowering: Lowering, node: exp.Expr, scope: Scope) -> tuple[exp.Expr, bool]:
    """The microseconds since 1970 of a time, of a window its last one; whether it is one without a zone."""
    if function_name(node) == "window_time" and len(node.expressions) == 1:
        node = node.expressions[0]
    type_ = _time_type(lowering, node, scope)
    is_local = _has_no_zone(lowering, type_, node)
    if type_.text.startswith("struct<"):
        end = exp.Dot(this=node.copy(), expression=exp.to_identifier("end"))
        return last_instant(end, is_local=is_local), is_local
    return micros_of(as_type(node.copy(), "timestamp") if type_ != TIMESTAMP else node.copy()), is_local


def _time_type(lowering: Lowering, node: exp.Expr, scope: Scope) -> SparkType:
    """The type of a time, or of a window."""
    check_row_level(node)
    scalar = Scalar(unparenthesized(qualify(node, scope)))
    return known_type(lowering.typer.types([scalar], scope.types)[0], node)


def _is_local(lowering: Lowering, scope: Scope, node: exp.Expr) -> bool:
    """Whether a window is one of times without a zone."""
    return _has_no_zone(lowering, _time_type(lowering, node, scope), node)


def _has_no_zone(lowering: Lowering, type_: SparkType, node: exp.Expr) -> bool:
    """Whether times of a type, or in windows of it, have no zone. Raises FIVM105 where clocks do not show UTC."""
    if "timestamp_ntz" not in type_.text:
        return False
    if not lowering.is_utc:
        what = "a window of TIMESTAMP_NTZ is maintained in a session in UTC alone"
        raise unsupported(node, what, "set the session's time zone to UTC, or CAST the time to TIMESTAMP")
    return True


def _check_sets(node: exp.Select, window: TimeWindow) -> None:
    group = node.args.get("group")
    if group is not None and (
        any(group.args.get(k) for k in ("rollup", "cube", "grouping_sets"))
        or any(isinstance(e, (exp.Rollup, exp.Cube, exp.GroupingSets)) for e in group.expressions)
    ):
        what = f"{window.name} in ROLLUP, CUBE or GROUPING SETS is not maintained yet"
        raise unsupported(window.call, what, "group by the window in a subquery first")


# Bounds


def _bounds(start: exp.Expr, window: TimeWindow) -> Bounds:
    """The times of a window that begins ``start`` microseconds after 1970."""
    is_local = window.is_local
    begins = time_of(start, is_local=is_local)
    from_begin = micros_of(begins.copy(), is_local=is_local)
    end = exp.Add(this=from_begin, expression=exp.Literal.number(window.length))
    return Bounds(begins, time_of(end, is_local=is_local), is_local)


def _sessions(
    lowering: Lowering, node: exp.Select, window: TimeWindow, at: Scalar, scope: Scope, relation: Node
) -> tuple[Bounds, Scope, Node]:
    """Of rows that are grouped by their session each with it; else each row is a session by itself."""
    projections = lowering.projections(node, scope)
    written = group_keys(node, scope, projections).expressions
    keys = []
    for key in written:
        is_window = any(function_name(p) == "session_window" for p in key.walk())
        if is_window and function_name(unparenthesized(key)) != "session_window":
            raise unsupported(window.call, "a part of a session in GROUP BY", "group by the session itself")
        if not is_window:
            if key.find(exp.Query) is not None:
                raise unsupported(key, "a subquery beside a session", "compute it in a subquery in FROM")
            keys.append(key)
    if len(keys) == len(written):
        return _bounds(window.at, window), scope, relation
    if any(name.startswith(CARRIED) for name in scope.aliases) or scope.outer is not None:
        raise unsupported(window.call, "a session in a subquery that may be correlated", "use a CTE")
    scalars = [to_scalar(k, scope) for k in keys]
    types = lowering.typer.types(scalars, scope.types)
    partition = tuple(
        Item(f"partition_{i + 1}", s, known_type(t, k))
        for i, (s, t, k) in enumerate(zip(scalars, types, keys, strict=True))
    )
    alias = lowering.alias("sessions")
    items: list[Item] = []
    moved = {}
    bounds = {SESSION_START, SESSION_LAST, SESSION_UNTIL}
    for f in relation.fields:
        name = unique_name(f.name, {i.name.lower() for i in items} | bounds)
        items.append(Item(name, f.scalar, f.type))
        moved[f.id] = Field(alias, name, f.type)
    relation = Sessions(relation, alias, partition, tuple(items), at=at, gap=window.length)
    sources = tuple(
        replace(s, columns=tuple((n, moved.get(f.id, f)) for n, f in s.columns)) for s in scope.sources
    )
    scope = replace(scope, sources=sources, outputs=tuple((n, moved.get(f.id, f)) for n, f in scope.outputs))
    scope = _with_source(scope, alias, relation.bounds)
    start, last = (column_ast(alias, name) for name in (SESSION_START, SESSION_LAST))
    starts, ends = (time_of(micros, is_local=window.is_local) for micros in (start, _the_same(last)))
    return Bounds(starts, ends, window.is_local, _bounds(window.at, window)), scope, relation


def _the_same(number: exp.Expr) -> exp.Expr:
    """The one value that microseconds have in a group, where they are not NULL: a quotient, to which changes are added.

    Seconds and the rest are added up each, so that a bigint holds the sum of some billions.
    """
    second = exp.Literal.number(1_000_000)
    many = exp.Nullif(this=exp.Count(this=number.copy()), expression=exp.Literal.number(0))
    seconds, rest = (
        exp.IntDiv(
            this=exp.Sum(this=part(this=number.copy(), expression=second.copy())), expression=many.copy()
        )
        for part in (exp.IntDiv, exp.Mod)
    )
    return exp.Add(this=exp.Mul(this=exp.paren(seconds), expression=second), expression=exp.paren(rest))


def _with_source(scope: Scope, alias: str, names: tuple[str, ...]) -> Scope:
    source = Source(alias, tuple((name, Field(alias, name, BIGINT)) for name in names))
    return replace(scope, sources=(*scope.sources, source))
