"""Window functions reach a length of time: frames RANGE BETWEEN INTERVAL over one ORDER BY of a timestamp.

With the frame ``[s + a, s + b]`` of a row at time s, a changed row at t matters to rows in ``[t − b, t − a]``.
In blocks of length ``max(|a|, |b|)`` these lie in its own block and in one beside it on either side (ViewDF,
section 6: windows name the parts that an update needs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fivm_dbt.catalog.types import BIGINT, DATE
from fivm_dbt.ir.instants import DAY, HOUR, instant_of, micros_of
from fivm_dbt.ir.intervals import interval_length
from fivm_dbt.ir.near import Near, block_of
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import Bound, WindowCall, window_calls

_SHORTEST = 1_000_000
"""Blocks below a second would be as many as the rows."""

_LONG, _PIECES = 28 * DAY, 4
"""A frame of so many days or more has so many blocks."""


@dataclass(frozen=True)
class Reach:
    """A frame in time around a row at ``at``: from ``first`` to ``last`` microseconds, below zero before it.

    Rows without a time come before all others where ``nulls_are_low``.
    """

    at: Scalar
    first: int
    last: int
    nulls_are_low: bool


def with_reach(node: Window) -> Window:
    """``node``, local to blocks of time too where all its window functions reach a fixed time; else as it is."""
    reach = _reach_of(node) if node.has_frames else None
    if reach is None:
        return node
    length, back, ahead = blocks_of(reach)
    block, day = block_of(micros_of(reach.at), length)
    added = (Item("block_us", block, BIGINT), Item("block_day", day, DATE))
    placed, _ = replace(node, partition=(*node.partition, *added)).with_key_shown()
    near = Near(block, day, length, (-ahead, back), (-ahead - back, back + ahead))
    return replace(placed, near=near)


def blocks_of(reach: Reach) -> tuple[int, int, int]:
    """How long blocks are, in microseconds, and how many of them before and behind its own a row reaches.

    A long frame has several: of a year all rows of one block would be computed again for one more day, and each from
    the year before it.

    >>> at, week = Scalar.parse("r.t"), 7 * DAY
    >>> blocks_of(Reach(at, -HOUR, 0, nulls_are_low=True)), blocks_of(Reach(at, -8 * week, week, nulls_are_low=True))
    ((3600000000, 1, 0), (1209600000000, 4, 1))
    """
    length = max(-reach.first, reach.last, _SHORTEST)
    if length >= _LONG:
        length = -(-length // (_PIECES * DAY)) * DAY
    return length, -(reach.first // length), -(-reach.last // length)


def _reach_of(node: Window) -> Reach | None:
    """The union of all frames, of at least one window function; None where one of them is not bounded by time."""
    found: list[Reach] = []
    types = {f.scalar: f.type for f in node.input.fields}
    for item in node.items:
        for window in window_calls(item.value):
            reach = reach_of(window)
            at = instant_of(reach.at, types.get(reach.at)) if reach is not None else None
            if reach is None or at is None:
                return None
            found.append(replace(reach, at=at))
    if not found or any(r.at != found[0].at for r in found):
        return None
    return union(found)


def union(found: Sequence[Reach]) -> Reach:
    """From the first to the last of what several frames around a row reach, and the row itself."""
    first, last = min(r.first for r in found), max(r.last for r in found)
    return replace(found[0], first=min(first, 0), last=max(last, 0))


def reach_of(window: WindowCall) -> Reach | None:
    """How far the frame of a window function reaches; None where it is not bounded by time."""
    frame = window.frame
    if len(window.order) != 1 or frame is None or frame.kind != "range":
        return None
    (order,) = window.order
    first, last = _distance(frame.start), 0 if frame.end is None else _distance(frame.end)
    if first is None or last is None:
        return None
    low, high = (-last, -first) if order.is_down else (first, last)
    return Reach(order.by, low, high, order.nulls_are_low)


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
