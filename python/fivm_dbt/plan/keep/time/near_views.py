"""Operators that look near in time have inner views: panes and rows by blocks, and the days of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DATE
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.instants import DAY
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Near, block_of
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.on_demand import is_on_demand
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.rename import moved, substituted, with_meaning
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.time_windows import TimeWindows
from fivm_dbt.ir.window import Window
from fivm_dbt.naming import unique_name
from fivm_dbt.plan.keep.kept_views import KeptViews, column_of
from fivm_dbt.plan.keep.ways import over_kept, with_own_rows
from fivm_dbt.rewrite.mixed_windows import with_both
from fivm_dbt.rewrite.panes import has_plain_keys, near_windows, over_panes
from fivm_dbt.rewrite.reach import with_reach
from fivm_dbt.rewrite.running import part_calls, split_running, with_running
from fivm_dbt.rewrite.sequences import with_days

Meaning = dict[ColumnId, Scalar]

_LISTED = 7 * DAY
"""Blocks that are listed of rows that are not kept are as long, at least."""

_LOOKED_UP, _MANY, _DENSE = 28 * DAY, 50, 20_000
"""The same where functions look at rows, if a key has so many of them, and not so many that a day is enough."""

_ROWS_OF_DAY = AggregateCall("day_rows", "count", None, None, BIGINT)


class Rows(Protocol):
    """Rows by their key: ``meaning`` is what columns are called there, ``keys`` what key expressions are."""

    @property
    def node(self) -> Node: ...

    @property
    def meaning(self) -> Meaning: ...

    @property
    def keys(self) -> dict[Scalar, Scalar]: ...


def looks_at_rows(node: Local) -> bool:
    """Whether blocks of time are there for nothing but the nearest rows."""
    near = node.near if isinstance(node, Window) else None
    return near is not None and near.beside is not None and near.needed == (0, 0)


def in_long_blocks(node: Local, rows_of_a_key: float | None) -> Window | None:
    """Windows that look at the nearest rows, local to blocks of some weeks; None where keys have few rows or very many.

    A list of days has about as many rows as there are, where a key has a row a day: to find the nearest fifty in it
    takes longer than to compute a month once more.
    """
    if rows_of_a_key is None or not _MANY <= rows_of_a_key < _DENSE or not isinstance(node, Window):
        return None
    found = with_days(node, _LOOKED_UP)
    return found if isinstance(found, Window) and looks_at_rows(found) else None


def _extremes(near: Near, names: Mapping[str, str]) -> Iterator[AggregateCall]:
    """What is kept of the rows of a block where that may stand for them; ``names`` are what relations are called."""
    kept = () if near.covered is None else (near.covered.time, *near.covered.parts)
    for extreme in kept:
        written = Scalar.parse(f"{extreme.how.upper()}({moved(extreme.argument, names).sql})")
        yield AggregateCall.as_written(extreme.column, extreme.how, written, extreme.type)


@dataclass
class NearViews:
    """Keeps what such operators need. ``visit`` gives a part of the query over kept views, ``by_key`` keeps rows."""

    kept: KeptViews
    visit: Callable[[Node], tuple[Node, Meaning]]
    by_key: Callable[[Node, frozenset[ColumnId], tuple[Item, ...], str], Rows]

    def of_windows(self, node: Aggregate) -> Aggregate | None:
        """An aggregate of sliding windows, over panes that are kept, or over rows by their time; None for others."""
        windows = node.input
        if node.adds_up or not isinstance(windows, TimeWindows):
            return None
        over = over_panes(node, windows, self.kept.alias())
        if over is not None and all(f.type.is_groupable for f in over.input.fields):
            (panes,) = over.input.inputs
            inner, _ = self.visit(panes)
            return replace(over, input=over.input.with_inputs((inner,)))
        if not has_plain_keys(node, windows):
            return None
        (rows,) = windows.inputs
        inner, meaning = self.visit(rows)
        over_inner = substituted(windows, (inner,), meaning)
        return self._over_rows(substituted(node, (over_inner,), meaning), over_inner)

    def _over_rows(self, node: Aggregate, windows: TimeWindows) -> Aggregate:
        """An aggregate of sliding windows over kept rows, placed by the block of time in which they lie."""
        block, day = block_of(windows.at, windows.length)
        keys = tuple(k for k in node.keys if windows.alias not in k.value.tables)
        keys = (*keys, Item("block_us", block, BIGINT), Item("block_day", day, DATE))
        used = node.used | windows.at.columns | frozenset(c for k in keys for c in k.value.columns)
        reason = "the rows from which windows are recomputed"
        kept = self.by_key(windows.input, used & windows.input.ids, keys, reason)
        if block not in kept.keys or day not in kept.keys:
            return node
        at = windows.at.substitute(kept.meaning.get)
        return replace(
            node,
            input=windows.over(kept.node, at),
            keys=tuple(
                replace(k, value=kept.keys.get(k.value, k.value.substitute(kept.meaning.get)))
                for k in node.keys
            ),
            calls=with_meaning(node.calls, kept.meaning),
            near=near_windows(kept.keys[block], kept.keys[day], windows.length),
        )

    def of_own_rows(self, node: Local) -> Node:
        """A view from whose own rows ``node`` is made anew, or ``node`` as it is where that cannot be kept."""
        inner, meaning = self.visit(node.input)
        over = substituted(node, (inner,), meaning)
        near = with_own_rows(over)
        if near is None or is_on_demand(over) or not all(f.type.is_groupable for f in near.fields):
            return over
        return self.kept.keep(near, (), f"{over.kind}, by the time of their rows")

    def reaching(self, node: Local) -> Local:
        """``node``, local to blocks of time or to days too where what it looks at is near in time."""
        return with_running(with_both(with_days(with_reach(node)))) if isinstance(node, Window) else node

    def split(self, node: Local) -> tuple[Window, Map] | None:
        """A window that goes on from day to day, and what makes ``node`` of it; None if there is none."""
        return self.kept.tried(partial(split_running, node)) if isinstance(node, Window) else None

    def over_kept(self, node: Local) -> Aggregate | None:
        """An aggregate over a kept view that says where its rows lie; None for others."""
        view = self.kept.scanned(node.input) if isinstance(node, Aggregate) else None
        return over_kept(node, view.node) if view is not None and isinstance(node, Aggregate) else None

    def over_input(self, node: Local, rows_of_a_key: float | None, *, is_near: bool) -> Local | None:
        """An operator over rows of which no copy is kept, local to blocks of time all the same: None where not.

        Those near the change are computed again. Where these are read alone, as rows lie in the order of time, blocks
        are listed as they are beside a copy. Else all rows are read, and a list is kept where it is short: where a
        frame has long blocks, or a key many rows. One of days may have as many rows as there are.
        """
        if not isinstance(node, Window) or node.near is None or not self.kept.can_change(node.input):
            return None
        if node.near.running is not None and not is_near:
            return None
        if node.near.running is None and node.near.beside is None and not (is_near and node.near.covered):
            return replace(node, near=replace(node.near, covered=None))
        is_short = node.near.length >= _LISTED or (rows_of_a_key is not None and rows_of_a_key >= _DENSE)
        return self._listed(node, node.near, node.input, {}) if is_short or is_near else None

    def with_days(self, node: Local) -> Local:
        """An operator over kept rows, with the days that these have if it looks for the nearest."""
        if not isinstance(node, Window) or not isinstance(node.input, Scan):
            return node
        near = node.near
        if near is None or (near.beside is None and near.running is None and near.covered is None):
            return node
        rows = replace(node.input, alias=self.kept.alias())
        return self._listed(node, near, rows, {node.input.alias: rows.alias})

    def _listed(self, node: Window, near: Near, rows: Node, names: Mapping[str, str]) -> Window:
        """A window that looks for the nearest rows, with what is kept for it of the same ``rows``.

        ``names`` are what relations are called there.
        """
        keys: tuple[Item, ...] = ()
        for k in node.key:
            name = column_of(k.value) if k.value.is_column else k.name
            keys += (Item(unique_name(name, {i.name for i in keys}), moved(k.value, names), k.type),)
        of = keys[:-2]
        if near.running is not None:
            parts = Aggregate(rows, self.kept.alias(), keys, part_calls(node, names))
            relation, columns = self._columns(parts, "what running functions are over each day of a key")
            found = [
                replace(p, column=c)
                for p, (c, _) in zip(near.running.parts, columns[len(keys) :], strict=True)
            ]
            running = replace(
                near.running,
                relation=relation,
                keys=columns[: len(of)],
                block=columns[len(of)][0],
                parts=tuple(found),
            )
            return replace(node, near=replace(near, running=running))
        counted = (_ROWS_OF_DAY,) if near.beside is not None and near.beside.is_counted else ()
        extremes = tuple(_extremes(near, names))
        days = Aggregate(rows, self.kept.alias(), keys, (*counted, *extremes))
        if extremes:
            # These are computed again from the rows of a block.
            block, day = moved(near.block, names), moved(near.day, names)
            days = replace(days, near=Near(block, day, near.length, (0, 0), (0, 0)))
        what = "blocks" if extremes else "days"
        relation, columns = self._columns(days, f"the {what} of each key that have rows")
        (in_block, _), (on_day, _), *rest = columns[len(of) :]
        beside = near.beside and replace(
            near.beside,
            relation=relation,
            keys=columns[: len(of)],
            block=in_block,
            rows=rest[0][0] if counted else None,
        )
        covered = near.covered and replace(
            near.covered, relation=relation, keys=columns[: len(of)], block=in_block, day=on_day
        )
        return replace(node, near=replace(near, beside=beside, covered=covered))

    def _columns(self, node: Aggregate, reason: str) -> tuple[str, tuple[tuple[str, SparkType], ...]]:
        """The relation that keeps ``node``, and the columns that it has there.

        Its rows are placed by time and not by a hash of the key: a change is near in time, and its keys may be any.
        """
        scan = self.kept.keep(node, (), reason)
        return scan.relation, scan.columns
