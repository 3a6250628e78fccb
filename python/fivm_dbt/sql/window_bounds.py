"""The bounds of a SELECT's window of time replace its calls, and columns that are called like it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.places import note, notes
from fivm_dbt.ir.scalar import as_type
from fivm_dbt.sql.expressions import check_row_level, unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.scope import Scope

_META = "time_window"


@dataclass(frozen=True)
class Bounds:
    """What the start and the end of a row's window are, times without a zone where it ``is_local``.

    The start tells the end. ``aggregated`` are those of the rows that an aggregate is over, where they are others: to
    Spark such a row is a session by itself.
    """

    start: exp.Expr
    end: exp.Expr
    is_local: bool = False
    aggregated: Bounds | None = None

    @property
    def struct(self) -> exp.Struct:
        parts = (("start", self.start), ("end", self.end))
        made = [exp.PropertyEQ(this=exp.to_identifier(n), expression=v.copy()) for n, v in parts]
        return exp.Struct(expressions=made)


def group_parts(node: exp.Expr) -> list[exp.Expr]:
    """What a GROUP BY item is grouped by: of a window its start."""
    start = notes(node).get(_META)
    return [node] if start is None else [start.copy()]


def is_window(node: exp.Expr) -> bool:
    """Whether a window was written in the place of a node."""
    return _META in notes(node)


def key_text(node: exp.Expr) -> str:
    """A GROUP BY item as it can be written again in the query: a window by its column."""
    written = notes(node).get("written_window")
    return str(written) if written else node.sql(dialect="spark", comments=False)


def time_of(micros: exp.Expr, *, is_local: bool = False) -> exp.Expr:
    """The time that is so many microseconds after 1970; one without a zone, in a session in UTC, where it ``is_local``.

    >>> time_of(exp.column("n"), is_local=True).sql("spark")
    'CAST(TIMESTAMP_MICROS(n) AS TIMESTAMP_NTZ)'
    """
    instant = exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[micros])
    return as_type(instant, "timestamp_ntz") if is_local else instant


def micros_of(time: exp.Expr, *, is_local: bool = False) -> exp.Expr:
    """The microseconds since 1970 of a time."""
    return exp.UnixMicros(this=as_type(time, "timestamp") if is_local else time)


def last_instant(end: exp.Expr, *, is_local: bool = False) -> exp.Expr:
    """The microseconds since 1970 before the end of a window."""
    return exp.paren(exp.Sub(this=micros_of(end, is_local=is_local), expression=exp.Literal.number(1)))


def with_bounds(
    node: exp.Select, scope: Scope, name: str, bounds: Bounds | None, is_local: Callable[[exp.Expr], bool]
) -> exp.Select:
    """A copy of the SELECT without its windows' calls. ``is_local`` tells of a window whether its ends have no zone."""
    changed = node.copy()
    rewrite = _Rewrite(scope, name, bounds, is_local)
    listed = []
    for expression in changed.expressions:
        new = rewrite(expression)
        if new is not expression and not isinstance(expression, exp.Alias):
            shown = unparenthesized(expression)
            named = shown.name if isinstance(shown, (exp.Column, exp.Dot)) else function_name(shown)
            new = exp.alias_(new, named or "window", copy=False)
        listed.append(new)
    changed.set("expressions", listed)
    for key in ("group", "having", "qualify", "order"):
        if changed.args.get(key) is not None:
            changed.set(key, rewrite(changed.args[key]))
    if changed.args.get("windows"):
        changed.set("windows", [rewrite(w) for w in changed.args["windows"]])
    return changed


@dataclass(frozen=True)
class _Rewrite:
    """Bounds in place of calls, and of columns that are called like the function and are none of the relations."""

    scope: Scope
    name: str
    bounds: Bounds | None
    is_local: Callable[[exp.Expr], bool]

    def __call__(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node
        if self._is_window(node):
            return self._struct()
        part = self._part_of(node)
        if part is not None and self.bounds is not None:
            return (self.bounds.start if part == "start" else self.bounds.end).copy()
        inside = self._in_aggregate(node)
        for child in list(node.iter_expressions()):
            new = inside(child)
            if new is not child:
                child.replace(new)
        if function_name(node) == "window_time":
            return self._time(node)
        return node

    def _struct(self) -> exp.Expr:
        assert self.bounds is not None
        struct = self.bounds.struct
        start = self.bounds.start.copy()
        note(start, written_window=f"{self.name}.start", window_key=f"{self.name}_start")
        note(struct, **{_META: start})
        return struct

    def _in_aggregate(self, node: exp.Expr) -> _Rewrite:
        """The same for what stands in a node. Raises FIVM105 for an aggregate that would have another value.

        To Spark a row that is aggregated is a session by itself, or has the bounds of its whole session where one
        aggregate is DISTINCT. The least start and the greatest end are the same then.
        """
        is_over = isinstance(node.parent, exp.Window) and node.arg_key == "this"
        is_of_rows = isinstance(node, exp.Filter) or (is_aggregate(node) and not is_over)
        if self.bounds is None or self.bounds.aggregated is None or not is_of_rows:
            return self
        same = "start" if isinstance(node, exp.Min) else "end" if isinstance(node, exp.Max) else None
        has_bounds = any(self._is_window(part) or self._part_of(part) for part in node.walk())
        if has_bounds and (same is None or self._part_of(unparenthesized(node.this)) != same):
            what = f"{node.sql('spark')}: Spark may take the session of a row or the whole one"
            raise unsupported(
                node, what, f"only MIN({self.name}.start) and MAX({self.name}.end) are the same"
            )
        return replace(self, bounds=self.bounds.aggregated)

    def _is_window(self, node: exp.Expr) -> bool:
        if self.bounds is None:
            return False
        if function_name(node) in ("window", "session_window"):
            return True
        is_bare = isinstance(node, exp.Column) and not node.table and node.name.lower() == self.name
        return is_bare and isinstance(node, exp.Column) and not self._is_known(node)

    def _part_of(self, node: exp.Expr) -> str | None:
        """``start`` or ``end`` where a node is that of the window."""
        if self.bounds is None:
            return None
        if isinstance(node, exp.Dot) and self._is_window(unparenthesized(node.this)):
            part = str(node.expression.name).lower()
        elif isinstance(node, exp.Column) and node.table.lower() == self.name and not node.args.get("db"):
            if self._is_known(node):
                return None
            part = str(node.name).lower()
        else:
            return None
        if part not in ("start", "end"):
            raise FivmError(
                "FIVM102",
                f"a window has a start and an end, and no {part}",
                span=span_of(node),
                remedy=f"write {self.name}.start or {self.name}.end",
            )
        return part

    def _is_known(self, column: exp.Column) -> bool:
        try:
            return self.scope.resolve(column) is not None
        except FivmError:
            return False

    def _time(self, node: exp.Expr) -> exp.Expr:
        """``window_time(w)``: the last instant of a window."""
        arguments = list(node.expressions)
        if len(arguments) != 1:
            raise unsupported(node, "window_time without a window", "give it the column of a window")
        (window,) = arguments
        if notes(window).get(_META) and self.bounds is not None:
            is_local = self.bounds.is_local
            return time_of(last_instant(self.bounds.end.copy(), is_local=is_local), is_local=is_local)
        check_row_level(window)
        is_local = self.is_local(window)
        end = exp.Dot(this=window.copy(), expression=exp.to_identifier("end"))
        return time_of(last_instant(end, is_local=is_local), is_local=is_local)
