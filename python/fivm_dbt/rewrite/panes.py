"""Aggregates over sliding windows that do not add up are computed over partial aggregates of panes.

``f(⊎_{p ∈ w} R_p) = g(f'(R_p1), …, f'(R_pn))`` for the panes p of a window w: MIN and MAX of a window are those of its
panes', a SUM the sum of theirs (ViewDF, section 5.2.1, View5; "distributive"). What a change costs is then the panes of
the windows that contain it, and not their rows. Of MEDIAN, COUNT(DISTINCT) and others the rows are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DATE, DOUBLE
from fivm_dbt.functions.of_parts import adds_up_by_parts, of_itself
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.build import aggregate, quotient
from fivm_dbt.ir.calls import Call
from fivm_dbt.ir.near import Near, block_of
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.time_windows import TimeWindows
from fivm_dbt.naming import unique_name
from fivm_dbt.rings.component import ROWS, Component
from fivm_dbt.rings.registry import components, finish


def over_panes(node: Aggregate, windows: TimeWindows, alias: str) -> Aggregate | None:
    """``node`` over windows of panes, an aggregate under ``alias``; None where some call needs the rows."""
    if not has_plain_keys(node, windows):
        return None
    if any(s is not None and windows.alias in s.tables for c in node.calls for s in (c.argument, c.written)):
        return None  # a pane does not know of which windows it is a part
    of_rows = tuple(k for k in node.keys if windows.alias not in k.value.tables)
    partials = _Partials(alias, {k.name.lower() for k in of_rows})
    calls = tuple(partials.call(c) for c in node.calls)
    if any(c is None for c in calls):
        return None
    names = [partials.name(name) for name in ("pane_us", "block_us", "block_day")]
    block, day = block_of(windows.pane, windows.length)
    added = zip(names, (windows.pane, block, day), (BIGINT, BIGINT, DATE), strict=True)
    keys = (*of_rows, *(Item(*part) for part in added))
    panes = Aggregate(windows.input, alias, keys, tuple(partials.calls))
    above = {k.name: Scalar.column(alias, k.name) for k in of_rows}
    return replace(
        node,
        input=windows.over(panes, Scalar.column(alias, names[0])),
        keys=tuple(replace(k, value=above.get(k.name, k.value)) for k in node.keys),
        calls=tuple(c for c in calls if c is not None),
        near=near_windows(Scalar.column(alias, names[1]), Scalar.column(alias, names[2]), windows.length),
    )


def near_windows(block: Scalar, day: Scalar, length: int) -> Near:
    """Windows that a row lies in reach no further than the blocks beside its own, of the windows' length."""
    return Near(block, day, length, (-1, 1), (-1, 1))


def has_plain_keys(node: Aggregate, windows: TimeWindows) -> bool:
    """Whether each key is of the rows or of the windows, and not of both."""
    return all(
        windows.alias not in k.value.tables or k.value.tables == frozenset({windows.alias}) for k in node.keys
    )


@dataclass
class _Partials:
    """The aggregates of a pane that the aggregates of windows are computed from, equal ones once."""

    alias: str
    taken: set[str]
    calls: list[AggregateCall] = field(default_factory=list)

    def name(self, wanted: str) -> str:
        name = unique_name(wanted, self.taken)
        self.taken.add(name.lower())
        return name

    def call(self, call: AggregateCall) -> AggregateCall | None:
        """A window's call over partial aggregates."""
        over = self._sum(call) if call.written is None else self._written(call)
        if over is None:
            return None
        return AggregateCall.as_written(
            call.name, call.function, over, call.type, is_repeatable=call.is_repeatable
        )

    def _sum(self, call: AggregateCall) -> Scalar | None:
        """COUNT, SUM, AVG of exact numbers: their components are added up, in panes and then in windows."""
        if not adds_up_by_parts(type_ for _, type_ in call.arguments):
            return None
        known = {c: self._total(c) for c in (ROWS, *components(call))}
        return finish(call, known.__getitem__)

    def _total(self, component: Component) -> Scalar:
        if component == ROWS:
            return self._added(aggregate("count"), component.type, "count")
        total = Scalar(component.numbers.total(component.term(Scalar.number(1)).ast()))
        return self._added(total, component.type, "sum")

    def _written(self, call: AggregateCall) -> Scalar | None:
        assert call.written is not None
        whole, called = call.written, Call.of(call.written)
        if called.name is not None and of_itself(whole) is not None:
            return aggregate(called.name, self._partial(whole, call.type, call))
        if call.function == "count_if":
            return self._added(whole, BIGINT, "count_if")
        if call.type != DOUBLE or call.function not in ("sum", "avg") or called.is_distinct:
            return None
        if call.function == "sum":
            return self._added(whole, DOUBLE, "sum", call)
        if called.is_filtered:
            return None
        (value,) = called.arguments
        total = self._added(aggregate("sum", value.cast("double")), DOUBLE, "sum", call)
        return quotient(total, self._added(aggregate("count", value), BIGINT, "count"))

    def _added(
        self, written: Scalar, type_: SparkType, wanted: str, call: AggregateCall | None = None
    ) -> Scalar:
        """The sum over panes of a partial aggregate."""
        return aggregate("sum", self._partial(written, type_, call, wanted))

    def _partial(
        self, written: Scalar, type_: SparkType, call: AggregateCall | None, wanted: str = ""
    ) -> Scalar:
        """The column of a partial aggregate."""
        found = next((c for c in self.calls if c.written == written), None)
        if found is None:
            label = wanted or (call.name if call is not None else "partial")
            is_repeatable = call is None or call.is_repeatable
            function = call.function if call is not None else "sum"
            name = self.name(f"pane_{label}")
            found = AggregateCall.as_written(name, function, written, type_, is_repeatable=is_repeatable)
            self.calls.append(found)
        return Scalar.column(self.alias, found.name)
