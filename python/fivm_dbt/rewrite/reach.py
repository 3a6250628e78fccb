"""Window functions reach a length of time: frames RANGE BETWEEN INTERVAL over one ORDER BY of a timestamp.

With the frame ``[s + a, s + b]`` of a row at time s, a changed row at t matters to rows in ``[t − b, t − a]``.
In blocks of length ``max(|a|, |b|)`` these lie in its own block and in one beside it on either side (ViewDF,
section 6: windows name the parts that an update needs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DATE
from fivm_dbt.ir.instants import DAY, HOUR, instant_of, micros_of
from fivm_dbt.ir.intervals import interval_length
from fivm_dbt.ir.near import Covered, Extreme, Near, block_of
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import Bound, WindowCall, window_calls

_SHORTEST = 1_000_000
"""Blocks below a second would be as many as the rows."""

_LONG, _PIECES, _FINE_PIECES = 28 * DAY, 4, 12
"""A frame of so many days or more has so many blocks, or up to so many."""


_MOVED = 26 * HOUR
"""Clocks of a zone are from 12 hours behind UTC to 14 before it: many days are so much shorter than 24 hours each, at
the most."""


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
    extremes = extremes_of(node)
    length, back, ahead = blocks_of(reach, is_fine=extremes is not None)
    block, day = block_of(micros_of(reach.at), length)
    added = (Item("block_us", block, BIGINT), Item("block_day", day, DATE))
    placed, _ = replace(node, partition=(*node.partition, *added)).with_key_shown()
    near = Near(block, day, length, (-ahead, back), (-ahead - back, back + ahead))
    return replace(placed, near=replace(near, covered=covered(extremes, length, -back, ahead)))


def blocks_of(reach: Reach, *, is_fine: bool = False) -> tuple[int, int, int]:
    """How long blocks are, in microseconds, and how many of them before and behind its own a row reaches.

    A long frame has several: of a year all rows of one block would be computed again for one more day, and each from
    the year before it. It has more where extremes of blocks stand for their rows, of a week at the least.

    >>> at, week = Scalar.parse("r.t"), 7 * DAY
    >>> blocks_of(Reach(at, -HOUR, 0, nulls_are_low=True)), blocks_of(Reach(at, -8 * week, week, nulls_are_low=True))
    ((3600000000, 1, 0), (1209600000000, 4, 1))
    """
    length = max(-reach.first, reach.last, _SHORTEST)
    if length >= _LONG:
        pieces = min(_FINE_PIECES, max(_PIECES, length // (7 * DAY))) if is_fine else _PIECES
        length = -(-length // (pieces * DAY)) * DAY
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


def reach_of(window: WindowCall, *, is_sure: bool = False) -> Reach | None:
    """How far the frame of a window function reaches, at most; None where it is not bounded by time.

    Where ``is_sure``, how far it reaches at least.
    """
    frame = window.frame
    if len(window.order) != 1 or frame is None or frame.kind != "range":
        return None
    (order,) = window.order
    start, end = _distance(frame.start), (0, 0) if frame.end is None else _distance(frame.end)
    if start is None or end is None:
        return None
    first, last = (start[1], end[0]) if is_sure else (start[0], end[1])
    low, high = (-last, -first) if order.is_down else (first, last)
    return Reach(order.by, low, high, order.nulls_are_low)


def _distance(bound: Bound) -> tuple[int, int] | None:
    """A bound in microseconds, below zero before the row: between which two it is, as days are not equally long."""
    if bound.place == "current row":
        return 0, 0
    length = interval_length(bound.distance) if bound.distance is not None else None
    if length is None:
        return None
    shortest = longest = length
    if length >= 23 * HOUR:
        shortest, longest = length - _MOVED, length + (length // (23 * HOUR) + 1) * HOUR
    return (-longest, -shortest) if bound.place == "before" else (shortest, longest)


@dataclass(frozen=True)
class Extremes:
    """What MIN and MAX in frames of time are over, the time that orders them, and each frame: at most, and surely."""

    time: Scalar
    time_type: SparkType
    parts: tuple[Extreme, ...]
    frames: tuple[tuple[Reach, Reach], ...]


def extremes_of(node: Window) -> Extremes | None:
    """Of windows whose functions in frames of time are all MIN and MAX of columns, beside others that look at rows.

    A row for a block may stand in the place of its rows then. None where there is no such function, or another one.
    """
    types = {f.scalar: f.type for f in node.input.fields}
    keys = {k.value for k in node.partition}
    if not all(key.is_column for key in keys):
        return None
    parts: dict[tuple[str, Scalar], Extreme] = {}
    frames, times = [], set()
    for window in (w for item in node.items for w in window_calls(item.value)):
        if set(window.partition) != keys or not window.order:
            return None
        at_most, surely = reach_of(window), reach_of(window, is_sure=True)
        if at_most is None or surely is None:
            continue
        argument = _extreme_of(window, types)
        if argument is None or argument == at_most.at or not at_most.at.is_column:
            return None
        times.add(at_most.at)
        frames.append((at_most, surely))
        how = "min" if window.call.name == "min" else "max"
        found = Extreme(argument, how, f"extreme_{len(parts) + 1}", types[argument])
        parts.setdefault((how, argument), found)
    if len(times) != 1:
        return None
    (time,) = times
    return Extremes(time, types[time], tuple(parts.values()), tuple(frames)) if time in types else None


def covered(extremes: Extremes | None, length: int, first: int, last: int) -> Covered | None:
    """The blocks from ``first`` to ``last`` of which the extremes are enough; None where there are none.

    A block ``i`` further than that of a row at s, anywhere in its own, lies in ``[s + a, s + b]`` as a whole if

        ``i·L ≥ L − 1 + a`` and ``(i + 1)·L − 1 ≤ b``
    """
    if extremes is None:
        return None
    steps = tuple(
        i for i in range(first, last + 1) if i and all(_is_covered(i, length, *f) for f in extremes.frames)
    )
    time = Extreme(extremes.time, "min", "block_time", extremes.time_type)
    return Covered(steps, time, extremes.parts) if steps else None


def _is_covered(step: int, length: int, at_most: Reach, surely: Reach) -> bool:
    """Whether a block lies in the frame of each row of another one as a whole, or in none of these frames."""
    begins, ends = step * length, (step + 1) * length - 1
    is_outside = ends < at_most.first or begins > length - 1 + at_most.last
    return is_outside or (begins >= length - 1 + surely.first and ends <= surely.last)


def _extreme_of(window: WindowCall, types: Mapping[Scalar, SparkType]) -> Scalar | None:
    """The column of which a window function is the least or the greatest value; None for any other function."""
    call = window.call
    if call.name not in ("min", "max") or call.is_distinct or call.is_filtered or window.nulls is not None:
        return None
    if len(call.arguments) != 1 or not call.arguments[0].is_column:
        return None
    type_ = types.get(call.arguments[0])
    is_plain = type_ is not None and type_.is_groupable and not type_.is_floating
    return call.arguments[0] if is_plain else None
