"""Window functions are functions of the rows of a partition, for each row, by frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlglot import exp

from fivm_dbt.testing.interpreter.aggregates import AGGREGATES, Call, compile_aggregate, order_of, taken_apart
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import (
    compile_expression,
    constant_of,
    converted,
    reads,
    uses,
)
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, at_depth
from fivm_dbt.testing.interpreter.types import DOUBLE, INT, Type
from fivm_dbt.testing.interpreter.values import (
    Value,
    as_timestamp,
    compare,
    months_added,
    peers,
    row_key,
    sorted_rows,
)

Rows = list[Env]
Function = Callable[[Rows, list[list[Value]], int], Value]
"""From a partition in order, its rows' sort values, and a row's place to that row's value."""


@dataclass
class Windows:
    """The window functions of a SELECT, each computed for all rows before the items are."""

    computed: list[Callable[[Rows], None]]

    def add(self, node: exp.Expr, context: Context) -> Expression:
        type_, compute = _compiled(node, context)
        index = len(self.computed)

        def store(rows: Rows) -> None:
            for env in rows:
                env.windows.append(None)
            compute(rows, index)

        self.computed.append(store)
        return Expression(type_, lambda env: env.windows[index])

    def compute(self, rows: Rows) -> None:
        for store in self.computed:
            store(rows)


@reads(exp.Window)
def window(node: exp.Expr, context: Context) -> Expression:
    depth, place = 0, context
    while place.windows is None and place.is_lambda and place.parent is not None:
        depth, place = depth + 1, place.parent
    if place.windows is None:
        raise NotUnderstood("a window where there are none", node)
    return at_depth(place.windows.add(node, place), depth)


uses(exp.Window, "this", "partition_by", "order", "spec", "alias", "over")


def _clauses(node: exp.Expr, context: Context) -> tuple[list[exp.Expr], exp.Expr | None, exp.Expr | None]:
    """PARTITION BY, ORDER BY and frame of a window, with those of the named one that it begins with."""
    parts, order, spec = node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec")
    name = node.args.get("alias")
    if name is None:
        return parts, order, spec
    named = context.named_windows.get(name.name.lower())
    if named is None:
        raise NotUnderstood(f"window {name.name}", node)
    base = _clauses(named, context)
    return parts or base[0], order or base[1], spec or base[2]


def _compiled(node: exp.Expr, context: Context) -> tuple[Type, Callable[[Rows, int], None]]:
    parts, order, spec = _clauses(node, context)
    plain = Context(context.columns, context.parent, context.relations, context.aliases, context.groups)
    partition = [compile_expression(p, plain).of for p in parts]
    keys = [compile_expression(o.this, plain) for o in order.expressions] if order is not None else []
    directions = order_of(order)
    type_, function = _function(node, plain, keys, directions, spec)

    def compute(rows: Rows, index: int) -> None:
        divided: dict[Value, Rows] = {}
        for env in rows:
            divided.setdefault(row_key([p(env) for p in partition]), []).append(env)
        for members in divided.values():
            ordered = sorted_rows(members, directions, lambda env: [k.of(env) for k in keys])
            values = [[k.of(env) for k in keys] for env in ordered]
            for place, env in enumerate(ordered):
                env.windows[index] = function(ordered, values, place)

    return type_, compute


def _function(
    node: exp.Expr,
    context: Context,
    keys: list[Expression],
    directions: list[tuple[int, bool, bool]],
    spec: exp.Expr | None,
) -> tuple[Type, Function]:
    called = node.this
    ignores = False
    while isinstance(called, (exp.IgnoreNulls, exp.RespectNulls)):
        ignores, called = isinstance(called, exp.IgnoreNulls), called.this
    name = called.this if isinstance(called, exp.Anonymous) else type(called).__name__
    if name in _RANKS:
        if called.expressions:
            raise NotUnderstood(f"{name} with arguments", node)
        return _RANKS[name]
    frame = _frame(spec, keys, directions, context)
    if name == "NTILE":
        return INT, _ntile(int(constant_of(compile_expression(called.expressions[0], context), called)))
    if name in ("LAG", "LEAD"):
        return _neighbour(called, name, ignores, context)
    if name in ("FIRST_VALUE", "LAST_VALUE", "FIRST", "LAST", "NTH_VALUE"):
        return _value(called, name, ignores, context, frame)
    call = taken_apart(node.this)
    if call is None or name not in AGGREGATES:
        return _filtered(node, context, frame)
    return _total(call, node.this, context, frame)


def _filtered(node: exp.Expr, context: Context, frame: Function) -> tuple[Type, Function]:
    call = taken_apart(node.this)
    if call is None:
        raise NotUnderstood(f"window function {node.this.name or type(node.this).__name__}", node)
    return _total(call, node.this, context, frame)


def _total(call: Call, node: exp.Expr, context: Context, frame: Function) -> tuple[Type, Function]:
    if call.is_distinct:
        raise NotUnderstood("a window over DISTINCT", node)
    found = compile_aggregate(node, context)

    def of(rows: Rows, values: list[list[Value]], place: int) -> Value:
        return found.of([rows[i] for i in frame(rows, values, place)])

    return found.type, of


def _before(values: list[list[Value]], place: int) -> int:
    """How many rows come before the row and those equal to it."""
    return next(i for i in range(place + 1) if peers(values[i], values[place]))


def _through(values: list[list[Value]], place: int) -> int:
    end = place
    while end + 1 < len(values) and peers(values[end + 1], values[place]):
        end += 1
    return end


def _dense(rows: Rows, values: list[list[Value]], place: int) -> int:
    return 1 + sum(not peers(values[i], values[i + 1]) for i in range(place))


def _percent(rows: Rows, values: list[list[Value]], place: int) -> float:
    return _before(values, place) / (len(rows) - 1) if len(rows) > 1 else 0.0


_RANKS: dict[str, tuple[Type, Function]] = {
    "ROW_NUMBER": (INT, lambda rows, values, place: place + 1),
    "RANK": (INT, lambda rows, values, place: _before(values, place) + 1),
    "DENSE_RANK": (INT, _dense),
    "PERCENT_RANK": (DOUBLE, _percent),
    "CUME_DIST": (DOUBLE, lambda rows, values, place: (_through(values, place) + 1) / len(rows)),
}


def _ntile(count: int) -> Function:
    def of(rows: Rows, values: list[list[Value]], place: int) -> int:
        size, larger = divmod(len(rows), count)
        border = larger * (size + 1)
        return place // (size + 1) + 1 if place < border else larger + (place - border) // size + 1

    return of


def _neighbour(called: exp.Expr, name: str, ignores: bool, context: Context) -> tuple[Type, Function]:
    arguments = [compile_expression(a, context) for a in called.expressions]
    value = arguments[0]
    step = int(constant_of(arguments[1], called.expressions[1])) if len(arguments) > 1 else 1
    step = step if name == "LEAD" else -step
    default = converted(arguments[2], value.type) if len(arguments) > 2 else None
    if ignores:
        raise NotUnderstood(f"{name} IGNORE NULLS", called)

    def of(rows: Rows, values: list[list[Value]], place: int) -> Value:
        if 0 <= place + step < len(rows):
            return value.of(rows[place + step])
        return default.of(rows[place]) if default is not None else None

    return value.type, of


def _value(
    called: exp.Expr, name: str, ignores: bool, context: Context, frame: Function
) -> tuple[Type, Function]:
    value = compile_expression(called.expressions[0], context)
    more = [constant_of(compile_expression(a, context), a) for a in called.expressions[1:]]
    number = 0
    if name == "NTH_VALUE":
        number = int(more.pop(0)) - 1
    elif name.startswith("LAST"):
        number = -1
    ignores = ignores or (bool(more) and more[0] is True)

    def of(rows: Rows, values: list[list[Value]], place: int) -> Value:
        found = [value.of(rows[i]) for i in frame(rows, values, place)]
        if ignores:
            found = [v for v in found if v is not None]
        return found[number] if -len(found) <= number < len(found) else None

    return value.type, of


def _frame(
    spec: exp.Expr | None, keys: list[Expression], directions: list[tuple[int, bool, bool]], context: Context
) -> Function:
    """The places of the rows that a row looks at."""
    if spec is None:
        if not keys:
            return lambda rows, values, place: range(len(rows))
        return lambda rows, values, place: range(_through(values, place) + 1)
    if spec.args.get("exclude"):
        raise NotUnderstood("EXCLUDE in a frame", spec)
    kind = str(spec.args.get("kind") or "").upper()
    bounds = [(spec.args.get(a), str(spec.args.get(f"{a}_side") or "").upper()) for a in ("start", "end")]
    if bounds[1][0] is None:
        bounds[1] = ("CURRENT ROW", "")
    if kind == "ROWS":
        return _rows_frame([_offset(b, side, context) for b, side in bounds])
    if kind == "RANGE":
        return _range_frame(bounds, keys, directions, context)
    raise NotUnderstood(f"a frame by {kind}", spec)


def _offset(bound: object, side: str, context: Context) -> int | None:
    """How many rows further on a frame's bound is; None where it has none."""
    if bound == "UNBOUNDED":
        return None
    if bound == "CURRENT ROW":
        return 0
    assert isinstance(bound, exp.Expr)
    number = constant_of(compile_expression(bound, context), bound)
    if not isinstance(number, int):
        raise NotUnderstood("a frame by rows that are no number", bound)
    return -number if side == "PRECEDING" else number


def _rows_frame(offsets: list[int | None]) -> Function:
    low, high = offsets

    def of(rows: Rows, values: list[list[Value]], place: int) -> Sequence[int]:
        first = 0 if low is None else max(0, place + low)
        last = len(rows) - 1 if high is None else min(len(rows) - 1, place + high)
        return range(first, last + 1)

    return of


def _range_frame(
    bounds: list[tuple[object, str]],
    keys: list[Expression],
    directions: list[tuple[int, bool, bool]],
    context: Context,
) -> Function:
    distances: list[Value] = []
    for bound, _ in bounds:
        if isinstance(bound, exp.Expr):
            if len(keys) != 1:
                raise NotUnderstood("RANGE over several columns", bound)
            distances.append(constant_of(compile_expression(bound, context), bound))
        else:
            distances.append(None)
    descending = bool(directions) and directions[0][1]

    def of(rows: Rows, values: list[list[Value]], place: int) -> Sequence[int]:
        return [
            i
            for i in range(len(rows))
            if all(
                _reaches(
                    n,
                    bounds[n],
                    distance=distances[n],
                    values=values,
                    place=place,
                    other=i,
                    descending=descending,
                )
                for n in (0, 1)
            )
        ]

    return of


def _reaches(
    which: int,
    bound: tuple[object, str],
    distance: Value,
    values: list[list[Value]],
    place: int,
    other: int,
    descending: bool,
) -> bool:
    """Whether a row is on the right side of the start (0) or the end (1) of the frame of the row at ``place``."""
    if bound[0] == "UNBOUNDED":
        return True
    if bound[0] == "CURRENT ROW" or values[place][0] is None:
        # NULL is beside NULL alone.
        if peers(values[other], values[place]):
            return True
        return other > place if which == 0 else other < place
    if values[other][0] is None:
        return other > place if which == 0 else other < place
    backwards = (bound[1] == "PRECEDING") != descending
    border = _moved(values[place][0], distance, -1 if backwards else 1)
    order = compare(_like(values[other][0], border), border)
    order = -order if descending else order
    return order >= 0 if which == 0 else order <= 0


def _moved(value: Value, distance: Value, sign: int) -> Value:
    if isinstance(value, date):
        if isinstance(distance, timedelta):
            return as_timestamp(value) + sign * distance
        return months_added(value, sign * distance)
    return value + sign * distance


def _like(value: Value, border: Value) -> Value:
    return as_timestamp(value) if isinstance(value, date) and hasattr(border, "hour") else value
