"""Window functions reach a length of time: frames RANGE BETWEEN INTERVAL over one ORDER BY of a timestamp.

With the frame ``[s + a, s + b]`` of a row at time s, a changed row at t matters to rows in ``[t − b, t − a]``.
In blocks of length ``max(|a|, |b|)`` these lie in its own block and in one beside it on either side (ViewDF,
section 6: windows name the parts that an update needs).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, DATE, TIMESTAMP
from fivm_dbt.ir.instants import HOUR, micros_of
from fivm_dbt.ir.near import Near, block_of
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.intervals import microseconds

_SHORTEST = 1_000_000
"""Blocks below a second would be as many as the rows."""


@dataclass(frozen=True)
class _Reach:
    """A frame in time around a row at ``at``: from ``first`` to ``last`` microseconds, below zero before it."""

    at: Scalar
    first: int
    last: int


def with_reach(node: Window) -> Window:
    """``node``, local to blocks of time too where all its window functions reach a fixed time; else as it is."""
    reach = _reach_of(node) if node.has_frames else None
    if reach is None:
        return node
    length = max(-reach.first, reach.last, _SHORTEST)
    block, day = block_of(micros_of(reach.at), length)
    added = (Item("block_us", block, BIGINT), Item("block_day", day, DATE))
    partition = (*node.partition, *added)
    items = list(node.items)
    for key in partition:
        if all(item.value != key.value for item in items):
            items.append(replace(key, name=unique_name(key.name, {i.name.lower() for i in items})))
    before, after = -int(reach.last > 0), int(reach.first < 0)
    needed = (before - int(reach.first < 0), after + int(reach.last > 0))
    near = Near(block, day, length, (before, after), needed)
    return replace(node, partition=partition, items=tuple(items), near=near)


def _reach_of(node: Window) -> _Reach | None:
    """The union of all frames, of at least one window function; None where one of them is not bounded by time."""
    found: list[_Reach] = []
    types = {f.scalar: f.type for f in node.input.fields}
    for item in node.items:
        for window in item.value.ast().find_all(exp.Window):
            reach = _frame(window)
            type_ = types.get(reach.at) if reach is not None else None
            if reach is None or type_ not in (TIMESTAMP, DATE):
                return None
            # A date is as long before another as their midnights are.
            found.append(reach if type_ == TIMESTAMP else replace(reach, at=reach.at.cast("timestamp")))
    if not found or any(r.at != found[0].at for r in found):
        return None
    first, last = min(r.first for r in found), max(r.last for r in found)
    return _Reach(found[0].at, min(first, 0), max(last, 0))


def _frame(window: exp.Window) -> _Reach | None:
    order, spec = window.args.get("order"), window.args.get("spec")
    if (
        order is None
        or len(order.expressions) != 1
        or spec is None
        or _word(spec.args.get("kind")) != "RANGE"
    ):
        return None
    ordered = order.expressions[0]
    bounds = [_bound(spec.args.get(side), spec.args.get(f"{side}_side")) for side in ("start", "end")]
    if spec.args.get("end") is None:
        bounds[1] = 0
    first, last = bounds
    if first is None or last is None:
        return None
    if ordered.args.get("desc"):
        first, last = -last, -first
    return _Reach(Scalar(ordered.this.copy()), first, last)


def _bound(value: object, side: object) -> int | None:
    """A bound in microseconds, below zero before the row; days as long as the longest of them are."""
    if _word(value) == "CURRENT ROW":
        return 0
    if not isinstance(value, exp.Interval) or not isinstance(value.this, exp.Literal):
        return None
    unit = value.args.get("unit")
    if unit is not None and not isinstance(unit, exp.Var):
        return None
    text = f"{value.this.name} {unit.name}" if unit is not None else value.this.name
    length = microseconds(text)
    if length is None:
        return None
    if length >= 23 * HOUR:
        length += (length // (23 * HOUR) + 1) * HOUR
    return -length if _word(side) == "PRECEDING" else length


def _word(value: object) -> str:
    """A keyword, which the text may have in any case."""
    return value.upper() if isinstance(value, str) else ""
