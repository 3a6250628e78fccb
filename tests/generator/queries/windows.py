"""Random window functions leave orders with ties to the planner at times, which completes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from generator.constructs import Menu, Place
from generator.queries.query import Block
from generator.queries.scalars import BIGINT, DOUBLE, INT, Col, Scalars, Type, summed

_ROWS = (
    "UNBOUNDED PRECEDING AND CURRENT ROW",
    "1 PRECEDING AND 1 FOLLOWING",
    "2 PRECEDING AND 1 PRECEDING",
    "CURRENT ROW AND UNBOUNDED FOLLOWING",
)


_BY_PLACE = frozenset(
    ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "rows frame")
)


@dataclass(frozen=True)
class Windowed:
    """A window function call with its type, and the named window that it needs."""

    text: str
    type: Type
    named: str = ""


def windowed(menu: Menu, block: Block, scalars: Scalars, alias: str, *, beside: bool = False) -> Windowed:
    """A call over the columns that can be compared, which are all that the query may then show.

    ``beside`` another window none whose order decides among equal rows: two such orders are refused.
    """
    over = Scalars(scalars.rng, scalars.keys)
    name = menu.choose(scalars.rng, "window", Place(over.columns), block.want) or "row_number"
    if name in ("window over groups", "named window"):
        block.use("named window")
        return _named(over, alias)
    if beside and name in _BY_PLACE:
        name = "whole partition"
    block.use(name)
    text, type_ = _FUNCTIONS[name](over)
    return Windowed(text, type_)


def partition(s: Scalars) -> str:
    count = s.rng.choice((0, 1, 1, 1, 2))
    chosen = s.rng.sample(s.keys, min(count, len(s.keys)))
    return f"PARTITION BY {', '.join(c.ref for c in chosen)} " if chosen else ""


def total_order(s: Scalars, columns: Sequence[Col] | None = None) -> str:
    """Every column in some order: rows that are equal in it are equal in all that is shown."""
    chosen = list(columns if columns is not None else s.keys)
    s.rng.shuffle(chosen)
    return ", ".join(order_item(s, column.ref) for column in chosen)


def some_order(s: Scalars) -> str:
    """A total order, or one that leaves ties, which the planner completes."""
    if s.rng.random() < 0.5:
        return total_order(s)
    return total_order(s, s.rng.sample(s.keys, s.rng.randint(1, min(2, len(s.keys)))))


def order_item(s: Scalars, ref: str) -> str:
    return f"{ref}{s.rng.choice(('', '', '', ' DESC', ' NULLS LAST', ' DESC NULLS FIRST'))}"


def _some(s: Scalars) -> Col:
    return s.rng.choice(s.keys)


def _added(s: Scalars) -> tuple[str, Type]:
    """An aggregate to be used as a window function."""
    choices: list[tuple[str, Type]] = [("COUNT(*)", BIGINT), (f"COUNT({_some(s).ref})", BIGINT)]
    if s.summable:
        number = s.rng.choice(s.summable)
        choices += [(f"SUM({number.ref})", summed(number.type))] * 3
        if number.type.is_integral:
            choices.append((f"AVG({number.ref})", DOUBLE))
    column = _some(s)
    choices += [(f"{s.rng.choice(('MIN', 'MAX'))}({column.ref})", column.type)]
    return s.rng.choice(choices)


def _ranked(call: str, type_: Type, *, ties: bool) -> Callable[[Scalars], tuple[str, Type]]:
    def function(s: Scalars) -> tuple[str, Type]:
        order = order_item(s, _some(s).ref) if ties else some_order(s)
        return f"{call} OVER ({partition(s)}ORDER BY {order})", type_

    return function


def _ntile(s: Scalars) -> tuple[str, Type]:
    return f"NTILE({s.rng.randint(2, 3)}) OVER ({partition(s)}ORDER BY {some_order(s)})", INT


def _neighbour(function: str) -> Callable[[Scalars], tuple[str, Type]]:
    def call(s: Scalars) -> tuple[str, Type]:
        column = _some(s)
        offset = s.rng.choice(("", ", 1", ", 2"))
        return f"{function}({column.ref}{offset}) OVER ({partition(s)}ORDER BY {some_order(s)})", column.type

    return call


def _picked(function: str) -> Callable[[Scalars], tuple[str, Type]]:
    def call(s: Scalars) -> tuple[str, Type]:
        column = _some(s)
        second = f", {s.rng.randint(1, 3)}" if function == "NTH_VALUE" else ""
        frame = f" ROWS BETWEEN {s.rng.choice(_ROWS)}" if s.rng.random() < 0.6 else ""
        # Where all equal rows have one frame, a text that leaves ties is refused.
        over = f"{partition(s)}ORDER BY {some_order(s) if frame else total_order(s)}{frame}"
        return f"{function}({column.ref}{second}) OVER ({over})", column.type

    return call


def _whole(s: Scalars) -> tuple[str, Type]:
    call, type_ = _added(s)
    return f"{call} OVER ({partition(s).strip()})", type_


def _rows_frame(s: Scalars) -> tuple[str, Type]:
    call, type_ = _added(s)
    return f"{call} OVER ({partition(s)}ORDER BY {some_order(s)} ROWS BETWEEN {s.rng.choice(_ROWS)})", type_


def _range_frame(s: Scalars) -> tuple[str, Type]:
    call, type_ = _added(s)
    frame = s.rng.choice(
        (
            "",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        )
    )
    return f"{call} OVER ({partition(s)}ORDER BY {order_item(s, _some(s).ref)}{frame})", type_


def _range_between(s: Scalars) -> tuple[str, Type]:
    call, type_ = _added(s)
    column = s.rng.choice(s.of("int"))
    bounds = s.rng.choice(
        ("1 PRECEDING AND CURRENT ROW", "1 PRECEDING AND 2 FOLLOWING", "CURRENT ROW AND 1 FOLLOWING")
    )
    over = f"{partition(s)}ORDER BY {order_item(s, column.ref)} RANGE BETWEEN {bounds}"
    return f"{call} OVER ({over})", type_


def _range_between_intervals(s: Scalars) -> tuple[str, Type]:
    call, type_ = _added(s)
    column = s.rng.choice(s.of("date"))
    bounds = s.rng.choice(
        (
            "INTERVAL 3 DAYS PRECEDING AND CURRENT ROW",
            "INTERVAL 2 MONTHS PRECEDING AND INTERVAL 1 MONTH PRECEDING",
            "CURRENT ROW AND INTERVAL 30 DAYS FOLLOWING",
        )
    )
    over = f"{partition(s)}ORDER BY {column.ref} RANGE BETWEEN {bounds}"
    return f"{call} OVER ({over})", type_


def _named(s: Scalars, alias: str) -> Windowed:
    call, type_ = _added(s)
    return Windowed(
        f"{call} OVER {alias}", type_, f"{alias} AS ({partition(s)}ORDER BY {order_item(s, _some(s).ref)})"
    )


_FUNCTIONS: dict[str, Callable[[Scalars], tuple[str, Type]]] = {
    "row_number": _ranked("ROW_NUMBER()", INT, ties=False),
    "rank": _ranked("RANK()", INT, ties=True),
    "dense_rank": _ranked("DENSE_RANK()", INT, ties=True),
    "percent_rank": _ranked("PERCENT_RANK()", DOUBLE, ties=True),
    "cume_dist": _ranked("CUME_DIST()", DOUBLE, ties=True),
    "ntile": _ntile,
    "lag": _neighbour("LAG"),
    "lead": _neighbour("LEAD"),
    "first_value": _picked("FIRST_VALUE"),
    "last_value": _picked("LAST_VALUE"),
    "nth_value": _picked("NTH_VALUE"),
    "whole partition": _whole,
    "rows frame": _rows_frame,
    "range frame": _range_frame,
    "range between values": _range_between,
    "range between intervals": _range_between_intervals,
}
