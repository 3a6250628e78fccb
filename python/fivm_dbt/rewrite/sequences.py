"""LAG, LEAD and frames of ROWS look at rows before or after the own one in time.

A changed row makes a difference to itself and to the next n rows, however far away they are. The days on which a key
has rows are kept, so that the days of the next n rows, and of the n before, are found without a look at the rows
between (ViewDF, section 6: sequence queries with a helper view of what they need from other parts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fivm_dbt.catalog.types import BIGINT, DATE
from fivm_dbt.ir.instants import DAY, day_of, instant_of, micros_of
from fivm_dbt.ir.near import Beside, Near, block_of
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import Bound, WindowCall, window_calls

_LOWEST, _HIGHEST = -62_135_596_800_000_000, 253_402_214_400_000_000
"""The blocks of rows without a time: the first day of the year 1, or the last one of 9999."""


@dataclass(frozen=True)
class Look:
    """The time by which a window function orders, where it has NULLs, and how many rows it looks earlier and later."""

    at: Scalar
    nulls_are_low: bool
    earlier: int
    later: int


def with_days(node: Window, length: int = DAY) -> Window:
    """``node``, local to days too where all its window functions look a number of rows back or ahead; else as it is.

    Days may be blocks of another ``length``. What keeps them is still to be said.
    """
    look = _look_of(node) if node.has_frames else None
    if look is None:
        return node
    placed, block, day = by_block(node, look.at, nulls_are_low=look.nulls_are_low, length=length)
    beside = Beside("", (), "block_us", look.earlier, look.later)
    return replace(placed, near=Near(block, day, length=length, changed=(0, 0), needed=(0, 0), beside=beside))


def by_block(
    node: Window, at: Scalar, *, nulls_are_low: bool, length: int = DAY
) -> tuple[Window, Scalar, Scalar]:
    """A window whose partitions are blocks of a key by the time ``at``: with the block and the day of a row."""
    aligned, _ = block_of(micros_of(at), length)
    block = Scalar.parse(f"COALESCE({aligned.sql}, {block_without_time(is_low=nulls_are_low)})")
    day = day_of(block)
    added = (Item("block_us", block, BIGINT), Item("block_day", day, DATE))
    placed, _ = replace(node, partition=(*node.partition, *added)).with_key_shown()
    return placed, block, day


def block_without_time(*, is_low: bool) -> int:
    """The block of rows without a time, which come before all others, or behind them."""
    return _LOWEST if is_low else _HIGHEST


def _look_of(node: Window) -> Look | None:
    types = {f.scalar: f.type for f in node.input.fields}
    found: list[Look] = []
    for item in node.items:
        for window in window_calls(item.value):
            look = look_of(window)
            at = instant_of(look.at, types.get(look.at)) if look is not None else None
            if look is None or at is None:
                return None
            found.append(replace(look, at=at))
    if not found or any((f.at, f.nulls_are_low) != (found[0].at, found[0].nulls_are_low) for f in found):
        return None
    return union(found)


def union(found: Sequence[Look]) -> Look:
    """As many rows as several window functions look at."""
    return replace(found[0], earlier=max(f.earlier for f in found), later=max(f.later for f in found))


def look_of(window: WindowCall) -> Look | None:
    """How many rows a window function looks at; None where that is not told."""
    rows = _rows(window)
    if not window.order or rows is None:
        return None
    first, (before, after) = window.order[0], rows
    earlier, later = (after, before) if first.is_down else (before, after)
    return Look(first.by, first.nulls_are_low, earlier, later)


def _rows(window: WindowCall) -> tuple[int, int] | None:
    """How many rows before its own and after it a window function looks at; None where that is not told."""
    call, frame = window.call, window.frame
    if window.nulls is not None:
        return None
    if call.name in ("lag", "lead") and frame is None:
        many = 1 if len(call.arguments) < 2 else call.arguments[1].as_number
        if many is None or many < 1:
            return None
        return (many, 0) if call.name == "lag" else (0, many)
    if frame is None or frame.kind != "rows" or frame.excludes:
        return None
    first, last = _offset(frame.start), 0 if frame.end is None else _offset(frame.end)
    if first is None or last is None or first > last:
        return None
    return max(-first, 0), max(last, 0)


def _offset(bound: Bound) -> int | None:
    """A bound in rows, below zero before the own one; None where it is no number."""
    if bound.place == "current row":
        return 0
    number = bound.distance.as_number if bound.distance is not None else None
    if number is None or number < 0:
        return None
    return -number if bound.place == "before" else number
