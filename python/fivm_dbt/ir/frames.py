"""A frame says how far the rows of a window function lie from its own row, in its order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.parts.shift import Shift

Distance = Callable[[exp.Expr, ColumnId], Shift | None]


@dataclass(frozen=True)
class Reach:
    """The rows from ``before`` earlier to ``after`` later than the own row; None for all of them."""

    before: Shift | None
    after: Shift | None

    def __or__(self, other: Reach) -> Reach:
        return Reach(_longer(self.before, other.before), _longer(self.after, other.after))


_ALL = Reach(None, None)
_WHOLE = (exp.Ntile, exp.PercentRank, exp.CumeDist)
_OFFSET = (exp.Lag, exp.Lead)
_LAST = (exp.LastValue, exp.Last)


def reach_of(values: tuple[Scalar, ...], distance: Distance) -> dict[ColumnId, Reach]:
    """By the column that all window functions of these values are ordered by, the rows that any of them looks at.

    Empty where they are ordered by several columns first, or by none. ``distance`` reads a constant of a frame.

    >>> running = Scalar.parse("sum(r.v) over (order by r.ts)")
    >>> reach_of((running,), lambda node, by: None)
    {('r', 'ts'): Reach(before=None, after=Shift(months=0, micros=0, slack=0))}
    """
    found: dict[ColumnId, Reach] = {}
    for window in (w for value in values for w in value.ast().find_all(exp.Window)):
        order = window.args.get("order")
        first = order.expressions[0] if order is not None else None
        if first is None or not isinstance(first.this, exp.Column):
            return {}
        column = (first.this.table, first.this.name)
        reach = _frame(window, column, distance)
        if first.args.get("desc"):
            reach = Reach(reach.after, reach.before)
        found[column] = found[column] | reach if column in found else reach
    return found if len(found) == 1 else {}


def ordered_by(values: Iterable[Scalar]) -> Iterator[Scalar]:
    """What the window functions of these values are ordered by."""
    windows = (w for value in values for w in value.ast().find_all(exp.Window))
    orders = (order for w in windows if (order := w.args.get("order")) is not None)
    return (Scalar(o.this.copy()) for order in orders for o in order.expressions)


def numbered_by(value: Scalar) -> frozenset[Scalar] | None:
    """What ROW_NUMBER() partitions by, where the value is just that.

    >>> [p.sql for p in numbered_by(Scalar.parse("row_number() over (partition by (r.k) order by r.t)"))]
    ['r.k']
    """
    window = value.ast()
    if not isinstance(window, exp.Window) or not isinstance(window.this, exp.RowNumber):
        return None
    return frozenset(Scalar(p.unnest().copy()) for p in window.args.get("partition_by") or [])


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
        if not isinstance(node, exp.Window) or not isinstance(node.this, _LAST):
            return node
        spec, last = node.args.get("spec"), Scalar(node.this.this.copy())
        is_up_to_own = node.args.get("order") is not None if spec is None else is_up_to_own_row(spec)
        return last.ast() if is_up_to_own and last in among else node

    found = value.ast()
    return Scalar(found.transform(visit)) if found.find(*_LAST) is not None else value


def is_up_to_own_row(spec: exp.Expr) -> bool:
    """Whether a frame is all rows up to the own one."""
    bounds = [spec.args.get(key) for key in ("start", "start_side", "end")]
    words = [b.upper() if isinstance(b, str) else b for b in bounds]
    return (
        words[:2] == ["UNBOUNDED", "PRECEDING"]
        and words[2] in (None, "CURRENT ROW")
        and not spec.args.get("exclude")
    )


def _frame(window: exp.Window, column: ColumnId, distance: Distance) -> Reach:
    """Rows before and after the own one in the order of the window."""
    spec = window.args.get("spec")
    if window.this.find(*_WHOLE) is not None:
        return _ALL
    by_offset = window.this.find(*_OFFSET)
    if by_offset is not None:
        offset = by_offset.args.get("offset")
        if offset is not None and (Scalar(offset).as_number or -1) < 0:
            return _ALL
        return Reach(None, Shift()) if isinstance(by_offset, exp.Lag) else Reach(Shift(), None)
    if spec is None:
        return Reach(None, Shift())
    start, end = (_end(spec, which, column, distance) for which in ("start", "end"))
    return Reach(
        None if start is None else _later(_negated(start), Shift()),
        None if end is None else _later(end, Shift()),
    )


def _end(spec: exp.WindowSpec, which: str, column: ColumnId, distance: Distance) -> Shift | None:
    """Where a frame begins or ends, after the own row; None where nothing bounds it in time."""
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").lower()
    if isinstance(value, str):
        return Shift() if value.upper() == "CURRENT ROW" else None
    if str(spec.args.get("kind")).lower() != "range" or not isinstance(value, exp.Expr):
        return None
    found = distance(value, column)
    return found if found is None or side == "following" else _negated(found)


def _negated(shift: Shift) -> Shift:
    return Shift(-shift.months, -shift.micros)


def _later(one: Shift, other: Shift) -> Shift:
    return max(one, other, key=lambda shift: shift.most)


def _longer(one: Shift | None, other: Shift | None) -> Shift | None:
    return None if one is None or other is None else _later(one, other)
