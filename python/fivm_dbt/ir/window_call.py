"""A window function is described by plain values: its call, what it partitions and orders by, and its frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from fivm_dbt.ir.build import aggregate
from fivm_dbt.ir.calls import Call
from fivm_dbt.ir.scalar import Scalar

Place = Literal["unbounded", "current row", "before", "after"]


@dataclass(frozen=True)
class Bound:
    """Where a frame begins or ends, seen from the own row; a ``distance`` is of rows, or of what is ordered by."""

    place: Place
    distance: Scalar | None = None


@dataclass(frozen=True)
class Frame:
    """A frame as it is written, of ``rows`` or a ``range``; without an ``end`` it goes up to the own row."""

    kind: str
    start: Bound
    end: Bound | None
    excludes: bool

    @property
    def is_up_to_own_row(self) -> bool:
        """Whether it is all rows up to the own one."""
        is_open = self.start.place == "unbounded"
        return is_open and not self.excludes and (self.end is None or self.end.place == "current row")


@dataclass(frozen=True)
class Order:
    """What rows are ordered by, downwards or not, and where NULL stands."""

    by: Scalar
    is_down: bool
    nulls_first: bool

    @property
    def nulls_are_low(self) -> bool:
        """Whether NULL is below all values."""
        return self.nulls_first != self.is_down


@dataclass(frozen=True)
class WindowCall:
    """A window function, as a whole in ``written``. ``nulls`` is what it says of NULL: to ignore or to respect it."""

    written: Scalar
    call: Call
    nulls: Literal["ignore", "respect"] | None
    partition: tuple[Scalar, ...]
    order: tuple[Order, ...]
    frame: Frame | None

    def over_same_rows(self, name: str, argument: Scalar) -> Scalar:
        """An aggregate over the rows that this function is over.

        >>> last = window_call(Scalar.parse("last_value(r.x) over (partition by r.k order by r.t)"))
        >>> last.over_same_rows("max", Scalar.parse("r.y")).sql
        'MAX(r.y) OVER (PARTITION BY r.k ORDER BY r.t)'
        """
        node = self.written.ast()
        node.set("this", aggregate(name, argument).ast())
        return Scalar(node)


def window_call(value: Scalar) -> WindowCall | None:
    """The window function that an expression is; None where it is something else, or has one inside.

    >>> found = window_call(Scalar.parse("lag(r.x, 2) over (partition by r.k order by r.t desc)"))
    >>> found.call.name, found.call.arguments, found.partition
    ('lag', (Scalar(r.x), Scalar(2)), (Scalar(r.k),))
    >>> found.order
    (Order(by=Scalar(r.t), is_down=True, nulls_first=False),)
    """
    node = value.ast()
    return _described(node) if isinstance(node, exp.Window) else None


def window_calls(value: Scalar) -> tuple[WindowCall, ...]:
    """All window functions in an expression.

    >>> [w.frame for w in window_calls(Scalar.parse("1 - sum(r.x) over (order by r.t rows 2 preceding)"))]
    [Frame(kind='rows', start=Bound(place='before', distance=Scalar(2)), end=None, excludes=False)]
    """
    return tuple(_described(node) for node in value.ast().find_all(exp.Window))


def with_windows(
    value: Scalar,
    window: Callable[[WindowCall], Scalar | None],
    column: Callable[[Scalar], Scalar | None],
) -> Scalar | None:
    """An expression with something else for its window functions and for its columns; None where one has nothing.

    >>> share = Scalar.parse("r.x / sum(r.x) over (order by r.t)")
    >>> with_windows(share, lambda _: Scalar.parse("w.total"), lambda _: Scalar.parse("w.x")).sql
    'w.x / (w.total)'
    """
    is_known = True

    def visit(node: exp.Expr) -> exp.Expr:
        nonlocal is_known
        if not isinstance(node, (exp.Window, exp.Column)):
            return node
        found = window(_described(node)) if isinstance(node, exp.Window) else column(Scalar(node.copy()))
        if found is None:
            is_known = False
            return node
        return exp.paren(found.ast()) if isinstance(node, exp.Window) else found.ast()

    changed = value.ast().transform(visit, copy=False)
    return Scalar(changed) if is_known else None


def running(total: Scalar, partition: Sequence[Scalar], order: Sequence[tuple[Scalar, bool]]) -> Scalar:
    """A ``total`` of all rows up to the own one, in an order of which each part may go downwards.

    >>> running(Scalar.parse("sum(r.x)"), [Scalar.parse("r.k")], [(Scalar.parse("r.t"), True)]).sql
    'SUM(r.x) OVER (PARTITION BY r.k ORDER BY r.t DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)'
    """
    ordered = [exp.Ordered(this=by.ast(), desc=is_down) for by, is_down in order]
    frame = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
    return Scalar(
        exp.Window(
            this=total.ast(),
            partition_by=[p.ast() for p in partition],
            order=exp.Order(expressions=ordered),
            spec=frame,
        )
    )


def _described(node: exp.Window) -> WindowCall:
    function, order, frame = node.this, node.args.get("order"), node.args.get("spec")
    nulls: Literal["ignore", "respect"] | None = None
    if isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
        nulls = "ignore" if isinstance(function, exp.IgnoreNulls) else "respect"
        function = function.this
    return WindowCall(
        Scalar(node.copy()),
        Call.of(Scalar(function)),
        nulls,
        partition=tuple(Scalar(p.copy()) for p in node.args.get("partition_by") or []),
        order=tuple(_order(o) for o in order.expressions) if order is not None else (),
        frame=_frame(frame) if frame is not None else None,
    )


def _order(node: exp.Ordered) -> Order:
    is_down, nulls_first = bool(node.args.get("desc")), node.args.get("nulls_first")
    return Order(Scalar(node.this.copy()), is_down, not is_down if nulls_first is None else bool(nulls_first))


def _frame(spec: exp.Expr) -> Frame:
    start, end = (_bound(spec.args.get(which), spec.args.get(f"{which}_side")) for which in ("start", "end"))
    kind = str(spec.args.get("kind")).lower()
    return Frame(kind, start or Bound("unbounded"), end, bool(spec.args.get("exclude")))


def _bound(value: object, side: object) -> Bound | None:
    if isinstance(value, exp.Expr):
        return Bound("before" if str(side).upper() == "PRECEDING" else "after", Scalar(value.copy()))
    if value is None:
        return None
    return Bound("current row" if str(value).upper() == "CURRENT ROW" else "unbounded")
