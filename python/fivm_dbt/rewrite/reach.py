"""Window functions reach a length of time: frames RANGE BETWEEN INTERVAL over one ORDER BY of a timestamp.

With the frame ``[s + a, s + b]`` of a row at time s, a changed row at t matters to rows in ``[t − b, t − a]``.
In blocks of length ``max(|a|, |b|)`` these lie in its own block and in one beside it on either side (ViewDF,
section 6: windows name the parts that an update needs).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.catalog.types import BIGINT, DATE
from fivm_dbt.ir.instants import HOUR, instant_of, micros_of
from fivm_dbt.ir.intervals import interval_length
from fivm_dbt.ir.near import Near, block_of
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import Bound, WindowCall, window_calls

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
    placed, _ = replace(node, partition=(*node.partition, *added)).with_key_shown()
    before, after = -int(reach.last > 0), int(reach.first < 0)
    needed = (before - int(reach.first < 0), after + int(reach.last > 0))
    near = Near(block, day, length, (before, after), needed)
    return replace(placed, near=near)


def _reach_of(node: Window) -> _Reach | None:
    """The union of all frames, of at least one window function; None where one of them is not bounded by time."""
    found: list[_Reach] = []
    types = {f.scalar: f.type for f in node.input.fields}
    for item in node.items:
        for window in window_calls(item.value):
            reach = _frame(window)
            at = instant_of(reach.at, types.get(reach.at)) if reach is not None else None
            if reach is None or at is None:
                return None
            found.append(replace(reach, at=at))
    if not found or any(r.at != found[0].at for r in found):
        return None
    first, last = min(r.first for r in found), max(r.last for r in found)
    return _Reach(found[0].at, min(first, 0), max(last, 0))


def _frame(window: WindowCall) -> _Reach | None:
    frame = window.frame
    if len(window.order) != 1 or frame is None or frame.kind != "range":
        return None
    (order,) = window.order
    first, last = _distance(frame.start), 0 if frame.end is None else _distance(frame.end)
    if first is None or last is None:
        return None
    return _Reach(order.by, -last, -first) if order.is_down else _Reach(order.by, first, last)


def _distance(bound: Bound) -> int | None:
    """A bound in microseconds, below zero before the row; days as long as the longest of them are."""
    if bound.place == "current row":
        return 0
    length = interval_length(bound.distance) if bound.distance is not None else None
    if length is None:
        return None
    if length >= 23 * HOUR:
        length += (length // (23 * HOUR) + 1) * HOUR
    return -length if bound.place == "before" else length
