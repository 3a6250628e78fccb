"""Running functions go over all rows up to the own one in time: sums, counts, extremes, ROW_NUMBER and the ranks.

A changed row makes a difference to the rows behind it, and to none before. For each key and day is kept what the
function is over the rows of that day; what it is over all days before a change follows from a row per day (ViewDF,
section 6: sequence queries with a helper view of what they need from other parts). So no row before the day of the
first change is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.functions.of_parts import MOST_DIGITS
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.instants import DAY, instant_of
from fivm_dbt.ir.near import Near, Part, Running
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.rename import moved
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import WindowCall, window_call, window_calls
from fivm_dbt.rewrite.plain_windows import plain_windows
from fivm_dbt.rewrite.sequences import by_block


def with_running(node: Window) -> Window:
    """``node``, local to days too where all its window functions go on from row to row by time; else as it is.

    What keeps the parts of days is still to be said.
    """
    is_out = not node.has_frames or node.near is not None
    found = None if is_out else _running(node)
    if found is None:
        return node
    at, nulls_are_low, running = found
    placed, block, day = by_block(node, at, nulls_are_low=nulls_are_low)
    return replace(placed, near=Near(block, day, DAY, (0, 0), (0, 0), running=running))


def split_running(node: Window, alias: Callable[[], str]) -> tuple[Window, Map] | None:
    """A window that :func:`with_running` takes, and a projection that makes ``node`` of it; None if there is none."""
    if node.near is not None or not node.has_frames:
        return None
    split = plain_windows(node, alias)
    return split if split is not None and _running(split[0]) is not None else None


def part_calls(node: Window, names: Mapping[str, str]) -> tuple[AggregateCall, ...]:
    """What is kept of the rows of a day for each running function of ``node``, in the order of its parts.

    ``names`` are what relations are called where that is computed.
    """
    assert node.near is not None and node.near.running is not None
    types = {f.scalar: f.type for f in node.input.fields}
    items = {i.name: i for i in node.items}
    calls = []
    for part in node.near.running.parts:
        window = window_call(items[part.of].value)
        argument = _argument(window)
        type_ = types[argument] if argument is not None else None
        argument = moved(argument, names) if argument is not None else None
        written = None
        if part.how in ("min", "max") and argument is not None:
            written = Scalar.parse(f"{part.how.upper()}({argument.sql})")
        elif window is not None and window.call.name == "dense_rank":
            # Peers have one time, and so are of one day: no two days count the same.
            peers = ", ".join(moved(o.by, names).sql for o in window.order)
            written = Scalar.parse(f"COUNT(DISTINCT STRUCT({peers}))")
        calls.append(
            AggregateCall(
                part.column, part.how, argument=argument, argument_type=type_, type=part.type, written=written
            )
        )
    return tuple(calls)


def _running(node: Window) -> tuple[Scalar, bool, Running] | None:
    """The time by which all functions order, whether NULLs are before all times, and how each goes on."""
    types = {f.scalar: f.type for f in node.input.fields}
    keys = {k.value for k in node.partition}
    parts: list[Part] = []
    orders = set()
    for item in node.items:
        window = window_call(item.value)
        if window is None:
            if window_calls(item.value):
                return None
            continue
        how = _how(window, types)
        if how is None or not window.order or set(window.partition) != keys:
            return None
        first = window.order[0]
        at = instant_of(first.by, types.get(first.by))
        if at is None:
            return None
        if first.is_down:
            # A new row stands before all others, so that all of them are read: these lie together by key.
            return None
        orders.add((at, first.nulls_are_low))
        type_ = BIGINT if how == "count" else item.type
        parts.append(Part(item.name, how, f"part_{len(parts) + 1}", type_))
    if len(orders) != 1:
        return None
    ((at, nulls_are_low),) = orders
    return at, nulls_are_low, Running("", (), "block_us", tuple(parts))


def _how(window: WindowCall, types: dict[Scalar, SparkType]) -> str | None:
    """How a function goes on from the rows before; None where it is no running one, or not of a plain column."""
    call, frame = window.call, window.frame
    if call.name in ("row_number", "rank", "dense_rank"):
        return "count"
    is_up_to_own = frame is None or frame.is_up_to_own_row
    if not is_up_to_own or call.is_distinct or call.is_filtered or window.nulls is not None:
        return None
    if call.name == "count" and not call.arguments:
        return "count"
    argument = _argument(window)
    type_ = types.get(argument) if argument is not None else None
    if type_ is None or call.name == "count":
        return None if type_ is None else "count"
    if call.name not in ("sum", "min", "max") or type_.is_floating:
        return None
    if call.name == "sum" and not (
        type_.is_integral or (type_.is_decimal and type_.precision <= MOST_DIGITS)
    ):
        return None
    return call.name


def _argument(window: WindowCall | None) -> Scalar | None:
    """The one column that a window function is over."""
    arguments = window.call.arguments if window is not None else ()
    return arguments[0] if len(arguments) == 1 and arguments[0].is_column else None
