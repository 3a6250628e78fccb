"""A frame says how far the rows of a window function lie from its own row, in its order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.window_call import Bound, Frame, WindowCall, window_call, window_calls
from fivm_dbt.parts.shift import Shift

Distance = Callable[[Scalar, ColumnId], Shift | None]


@dataclass(frozen=True)
class Reach:
    """The rows from ``before`` earlier to ``after`` later than the own row; None for all of them."""

    before: Shift | None
    after: Shift | None

    def __or__(self, other: Reach) -> Reach:
        return Reach(_longer(self.before, other.before), _longer(self.after, other.after))


_ALL = Reach(None, None)
_WHOLE = ("ntile", "percent_rank", "cume_dist")
_LAST = ("last_value", "last")


def reach_of(values: tuple[Scalar, ...], distance: Distance) -> dict[ColumnId, Reach]:
    """By the column that all window functions of these values are ordered by, the rows that any of them looks at.

    Empty where they are ordered by several columns first, or by none. ``distance`` reads a constant of a frame.

    >>> running = Scalar.parse("sum(r.v) over (order by r.ts)")
    >>> reach_of((running,), lambda node, by: None)
    {('r', 'ts'): Reach(before=None, after=Shift(months=0, micros=0, slack=0))}
    """
    found: dict[ColumnId, Reach] = {}
    for window in (w for value in values for w in window_calls(value)):
        if not window.order or not window.order[0].by.is_column:
            return {}
        first = window.order[0]
        (column,) = first.by.columns
        reach = _reach(window, column, distance)
        if first.is_down:
            reach = Reach(reach.after, reach.before)
        found[column] = found[column] | reach if column in found else reach
    return found if len(found) == 1 else {}


def ordered_by(values: Iterable[Scalar]) -> Iterator[Scalar]:
    """What the window functions of these values are ordered by."""
    return (order.by for value in values for w in window_calls(value) for order in w.order)


def numbered_by(value: Scalar) -> frozenset[Scalar] | None:
    """What ROW_NUMBER() partitions by, where the value is just that.

    >>> [p.sql for p in numbered_by(Scalar.parse("row_number() over (partition by (r.k) order by r.t)"))]
    ['r.k']
    """
    window = window_call(value)
    if window is None or window.call.name != "row_number":
        return None
    return frozenset(Scalar(p.ast().unnest()) for p in window.partition)


def partitioned_by(value: Scalar, by: Scalar) -> Scalar:
    """The expression with its window functions partitioned by one thing more.

    >>> partitioned_by(Scalar.parse("sum(r.v) over (partition by r.k order by r.ts)"), Scalar.column("r", "part")).sql
    'SUM(r.v) OVER (PARTITION BY r.k, r.part ORDER BY r.ts)'
    """
    ast = value.ast()
    for window in list(ast.find_all(exp.Window)):
        window.set("partition_by", [*(window.args.get("partition_by") or []), by.ast()])
    return Scalar(ast)


def has_window(value: Scalar) -> bool:
    """Whether there is a window function in an expression."""
    return value.ast().find(exp.Window) is not None


def with_own_values(value: Scalar, among: Collection[Scalar]) -> Scalar:
    """The expression with the own value for the last one up to the own row, of columns that are ``among`` these.

    >>> x = Scalar.parse("r.x")
    >>> with_own_values(Scalar.parse("last_value(r.x) over (order by r.ts, r.x) + 1"), {x}).sql
    'r.x + 1'
    """

    def visit(node: exp.Expr) -> exp.Expr:
        window = window_call(Scalar(node.copy())) if isinstance(node, exp.Window) else None
        if window is None or window.nulls is not None or window.call.name not in _LAST:
            return node
        (last, *_), frame = window.call.arguments, window.frame
        is_up_to_own = bool(window.order) if frame is None else frame.is_up_to_own_row
        return last.ast() if is_up_to_own and last in among else node

    return Scalar(value.ast().transform(visit)) if has_window(value) else value


def _reach(window: WindowCall, column: ColumnId, distance: Distance) -> Reach:
    """Rows before and after the own one in the order of the window."""
    name, frame = window.call.name, window.frame
    if name in _WHOLE:
        return _ALL
    if name in ("lag", "lead"):
        offset = window.call.arguments[1] if len(window.call.arguments) > 1 else None
        if offset is not None and (offset.as_number or -1) < 0:
            return _ALL
        return Reach(None, Shift()) if name == "lag" else Reach(Shift(), None)
    if frame is None:
        return Reach(None, Shift())
    start, end = (_end(frame, bound, column, distance) for bound in (frame.start, frame.end))
    return Reach(
        None if start is None else _later(_negated(start), Shift()),
        None if end is None else _later(end, Shift()),
    )


def _end(frame: Frame, bound: Bound | None, column: ColumnId, distance: Distance) -> Shift | None:
    """Where a frame begins or ends, after the own row; None where nothing bounds it in time."""
    if bound is None or bound.distance is None:
        return Shift() if bound is not None and bound.place == "current row" else None
    if frame.kind != "range":
        return None
    found = distance(bound.distance, column)
    return found if found is None or bound.place == "after" else _negated(found)


def _negated(shift: Shift) -> Shift:
    return Shift(-shift.months, -shift.micros)


def _later(one: Shift, other: Shift) -> Shift:
    return max(one, other, key=lambda shift: shift.most)


def _longer(one: Shift | None, other: Shift | None) -> Shift | None:
    return None if one is None or other is None else _later(one, other)
