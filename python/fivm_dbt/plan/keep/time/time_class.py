"""A view over time is in a class (ViewDF, section 6), which tells what a refresh looks at.

* *windowed*: a predicate of time, here a window or a frame, tells the parts that an update needs;
* *constant extra state*: what is kept per group is enough, and nothing is read again;
* *whole input*: an update may need all rows, here all of one key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from fivm_dbt.delta.term import scans
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.instants import DAY
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Days, Near
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.time_windows import TimeWindows, is_bound_of_window
from fivm_dbt.plan.model.view import TimeClass, View
from fivm_dbt.registry import Registry

_UNITS = (
    ("week", 604_800_000_000), ("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000),
    ("second", 1_000_000), ("millisecond", 1_000), ("microsecond", 1),
)  # fmt: skip


TIME_CLASSES: Registry[Callable[[Any], TimeClass]] = Registry()
"""The class of a view over an operator that a feature adds, by its class."""


def with_time_classes(views: tuple[View, ...]) -> tuple[View, ...]:
    """The views of a plan, each with its class."""
    bounds = bounds_of_windows(views)
    return tuple(replace(v, over_time=time_class(v, bounds)) for v in views)


def time_class(view: View, bounds: Collection[tuple[str, str]] = ()) -> TimeClass | None:
    """The class of a view over time; None of a view that has no windows, frames or sequences of time.

    ``bounds`` are the columns of kept views that are bounds of windows (:func:`bounds_of_windows`).
    """
    node = view.core
    while isinstance(node, (Map, Filter)):
        node = node.input
    if isinstance(node, TimeWindows) and not view.is_bag:
        slide, length = in_words(node.slide), in_words(node.length)
        why = f"the change of a pane is added to each window of {length} that has it, one every {slide}"
        return TimeClass("constant extra state", why)
    if isinstance(node, Local) and node.near is not None:
        return TimeClass("windowed", _reads(node, node.near))
    special = TIME_CLASSES.of(node)
    if special is not None:
        return special(node)
    if isinstance(node, Local) and node.goes_by_time:
        keys = ", ".join(_name(k.value) for k in node.key)
        return TimeClass(
            "whole input", f"all rows of an affected {keys}" if keys else "all rows, as one sequence"
        )
    if not view.is_bag and any(is_bound_of_window(k.value) for k in view.state.keys):
        return TimeClass("constant extra state", "the change of a row is added to its window")
    if isinstance(node, Aggregate) and any(_is_bound(k.value, node, bounds) for k in node.keys):
        return TimeClass("windowed", "the rows of an affected window")
    return None


def bounds_of_windows(views: Iterable[View]) -> frozenset[tuple[str, str]]:
    """The key columns of states that are bounds of windows: relation, column."""
    return frozenset((v.name, k.name) for v in views for k in v.state.keys if is_bound_of_window(k.value))


def _is_bound(value: Scalar, node: Node, bounds: Collection[tuple[str, str]]) -> bool:
    relations = {s.alias: s.relation for s in scans(node)}
    found = ((relations.get(table, ""), name) for table, name in value.columns)
    return is_bound_of_window(value) or (value.is_column and any(column in bounds for column in found))


def _reads(node: Local, near: Near | Days) -> str:
    if isinstance(near, Days):
        return "the rows of an affected session"
    if node.is_of_own_rows:
        return (
            f"the sessions that have rows within {in_words(near.length)} of the change, from their own rows"
        )
    if near.running is not None:
        return "the rows from the day of the change on, and what the functions are over each day before it"
    if near.covered is not None and near.covered.relation:
        every, extremes = near.changed[1] - near.changed[0] + 1, len(near.covered.steps)
        beside = "" if near.beside is None else ", and the rows in the nearest ones"
        of = f"of {every} blocks of {in_words(near.length)} around the change"
        return f"{of} the rows in {every - extremes}, the extremes of the others{beside}"
    if near.beside is not None:
        many = max(near.beside.earlier, near.beside.later)
        what = f"{many} rows" if many > 1 else "rows"
        if near.needed == (0, 0):
            if near.length == DAY:
                return (
                    f"the rows of the day of the change, and of the nearest days that have {what} of the key"
                )
            block = f"the block of {in_words(near.length)} of the change"
            return f"the rows in {block}, and in the nearest ones that have {what} of the key"
        around = f"{near.needed[1] - near.needed[0] + 1} blocks of {in_words(near.length)} around the change"
        return f"the rows in {around}, and around the nearest ones that have {what} of the key"
    blocks = near.needed[1] - near.needed[0] + 1
    what = "rows"
    if isinstance(node, Aggregate) and isinstance(node.input, TimeWindows):
        over = node.input.input
        what = "panes" if isinstance(over, Scan) and _has_panes(over) else "rows"
    if blocks == 1:
        return f"the {what} in the block of {in_words(near.length)} of the change"
    return f"the {what} in {blocks} blocks of {in_words(near.length)}, that of the change and those beside it"


def _has_panes(scan: Scan) -> bool:
    return any(name == "pane_us" for name, _ in scan.columns)


def _name(value: Scalar) -> str:
    return value.sql.split(".")[-1] if value.is_column else value.sql


def in_words(micros: int) -> str:
    """A length of time in the largest unit that it is a whole number of.

    >>> in_words(5_400_000_000), in_words(3_600_000_000)
    ('90 minutes', '1 hour')
    """
    unit, size = next((u, s) for u, s in _UNITS if micros % s == 0)
    many = micros // size
    return f"{many} {unit}" if many == 1 else f"{many} {unit}s"
