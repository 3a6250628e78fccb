"""Window functions are split from what is computed of them, so that they go on from row to row.

``AVG(x) OVER w`` is ``SUM(x) OVER w / COUNT(x) OVER w`` with AVG's type and rounding, ``SUM(a * b) OVER w`` a sum of a
column, and a share of two sums is a projection over both. The first value in the order of the window is that of the
least row, ``FIRST_VALUE(x) OVER w = (MIN(STRUCT(order, x)) OVER w).x``, and with IGNORE NULLS the last one that of the
greatest row that has one. What the types of the new columns are must be told by those that are known; else all stays as
it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.build import case, is_there, struct
from fivm_dbt.ir.frames import has_window
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import WindowCall, window_call, with_windows
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.rings.averages import added_up
from fivm_dbt.rings.quotient import averages_exactly
from fivm_dbt.rings.registry import finish, named_components

_WIDER = 10
"""Digits by which a sum of decimals is wider than its values."""
_MOST_DIGITS = 38
_FIRST, _LAST = ("first_value", "first"), ("last_value", "last")
_VALUE = "value"
"""The field of a struct in which the value of a first or last row is."""


def plain_windows(node: Window, alias: Callable[[], str]) -> tuple[Window, Map] | None:
    """``node`` with each window function as a column, and the projection of its items over that; None if not known how.

    ``alias`` gives names for relations that no other has.
    """
    found = _Columns({f.scalar: f.type for f in node.input.fields})
    over = alias()
    shown = []
    for item in node.items:
        value = found.shown(item, over)
        if value is None:
            return None
        shown.append(Item(item.name, value, item.type))
    below = node.input
    partition, items = node.partition, tuple(found.items)
    if found.arguments:
        columns = alias()
        placed = {}
        listed: list[Item] = []
        for f in node.input.fields:
            name = unique_name(storable(f.name), {i.name.lower() for i in listed})
            listed.append(Item(name, f.scalar, f.type))
            placed[f.id] = Scalar.column(columns, name)
        for argument, (name, type_) in found.arguments.items():
            own = unique_name(name, {i.name.lower() for i in listed})
            listed.append(Item(own, argument, type_))
            placed["", name] = Scalar.column(columns, own)
        below = Map(node.input, columns, tuple(listed))
        partition = tuple(Item(k.name, k.value.substitute(placed.get), k.type) for k in partition)
        items = tuple(Item(i.name, i.value.substitute(placed.get), i.type) for i in items)
    window = Window(below, over, partition, items)
    return window, Map(window, node.alias, tuple(shown))


@dataclass
class _Columns:
    """The columns of the new window, and the expressions that its functions are over."""

    types: dict[Scalar, SparkType]
    items: list[Item] = field(default_factory=list)
    arguments: dict[Scalar, tuple[str, SparkType]] = field(default_factory=dict)

    def shown(self, item: Item, over: str) -> Scalar | None:
        """An item as an expression over the columns of the window ``over``."""
        own = window_call(item.value)
        if own is not None:
            return self._function(own, item.type, over)
        if not has_window(item.value):
            return self._column(item.name, item.value, item.type, over)
        return with_windows(
            item.value,
            lambda window: self._function(window, None, over),
            lambda column: self._input(column, over),
        )

    def _input(self, column: Scalar, over: str) -> Scalar | None:
        """A column of the rows as one of the window; None for what stands for the clock."""
        if column not in self.types:
            return None
        ((_, name),) = column.columns
        return self._column(name, column, self.types[column], over)

    def _column(self, name: str, value: Scalar, type_: SparkType, over: str) -> Scalar:
        """A column of the window for a value, the same one for the same value."""
        found = next((i for i in self.items if i.value == value), None)
        if found is None:
            found = Item(unique_name(storable(name), {i.name.lower() for i in self.items}), value, type_)
            self.items.append(found)
        return Scalar.column(over, found.name)

    def _function(self, window: WindowCall, type_: SparkType | None, over: str) -> Scalar | None:
        """A window function of this type, where that is known, over the columns of the window ``over``."""
        call, name = window.call, window.call.name
        if call.is_filtered:
            return None
        if name in (*_FIRST, *_LAST):
            return self._end(window, over)
        if window.nulls == "ignore":
            return None
        if name in ("row_number", "rank"):
            return self._column(name, window.written, INT, over)
        if name not in ("sum", "count", "avg", "min", "max") or call.is_distinct or len(call.arguments) > 1:
            return None
        if not call.arguments:
            return self._column(name, window.written, BIGINT, over)
        argument = self._argument(name, call.arguments[0], type_)
        if argument is None:
            return None
        value, argument_type = argument
        result = _result(name, argument_type)
        if result is None:
            return None
        if name != "avg":
            return self._column(name, window.over_same_rows(name, value), result, over)
        mean = AggregateCall(name, "avg", value, argument_type, result)
        parts = named_components(mean)
        summed, summed_type = added_up(value, argument_type)
        sum_type = _result("sum", summed_type) or result
        if summed != value:
            summed = self._kept(summed, summed_type)
        sums = self._column("sum", window.over_same_rows("sum", summed), sum_type, over)
        counts = self._column("count", window.over_same_rows("count", value), BIGINT, over)
        return finish(mean, {parts["sum"]: sums, parts["count"]: counts}.__getitem__)

    def _end(self, window: WindowCall, over: str) -> Scalar | None:
        """The value of the first row of a window, or with IGNORE NULLS of the first or last one that has a value."""
        value, ignores_nulls = window.call.arguments[0], window.nulls == "ignore"
        type_ = self.types.get(value)
        if type_ is None or (window.call.name in _LAST and not ignores_nulls):
            return None
        row = self._row(window, value, type_)
        if row is None:
            return None
        placed, placed_type = row
        if ignores_nulls:
            placed = case(is_there(value), placed)
        end = "min" if window.call.name in _FIRST else "max"
        kept = self._kept(placed, placed_type)
        found = self._column(end, window.over_same_rows(end, kept), placed_type, over)
        return found.field(_VALUE)

    def _row(self, window: WindowCall, value: Scalar, type_: SparkType) -> tuple[Scalar, SparkType] | None:
        """A row as a struct that is less where it comes first, its type; None where it could not be compared."""
        fields: list[tuple[str, Scalar, SparkType]] = []
        for number, order in enumerate(window.order, start=1):
            key_type = self.types.get(order.by)
            if key_type is None or order.is_down or not order.nulls_first:
                return None
            # Engines do not agree on where NULL stands in a struct.
            fields.append((f"has_{number}", is_there(order.by), BOOLEAN))
            fields.append((f"by_{number}", order.by, key_type))
        fields.append((_VALUE, value, type_))
        if len(fields) == 1 or any(not t.is_exact for _, _, t in fields):
            return None
        types = ",".join(f"{n}:{t.text}" for n, _, t in fields)
        return struct([(n, v) for n, v, _ in fields]), SparkType(f"struct<{types}>")

    def _argument(
        self, name: str, value: Scalar, result: SparkType | None
    ) -> tuple[Scalar, SparkType] | None:
        """What a function is over, as a column, and its type, which may follow from that of its result."""
        known = self.types.get(value)
        if known is not None:
            return value, known
        # What stands for the clock is no column of the rows, and is not to be kept.
        is_of_rows = all(Scalar.column(*column) in self.types for column in value.columns)
        if not value.columns or not is_of_rows or has_window(value):
            return None
        type_ = INT if name == "count" else _argument_type(name, result)
        if type_ is None:
            return None
        value = case(is_there(value), Scalar.number(1)) if name == "count" else value.cast(type_.text)
        return self._kept(value, type_), type_

    def _kept(self, value: Scalar, type_: SparkType) -> Scalar:
        """An expression as a column of the rows below the window."""
        if value not in self.arguments:
            self.arguments[value] = (f"argument_{len(self.arguments) + 1}", type_)
        column = Scalar.column("", self.arguments[value][0])
        self.types[column] = type_
        return column


def _result(name: str, argument: SparkType) -> SparkType | None:
    """The type of an aggregate over values of a type; None where it cannot go on from row to row exactly."""
    if name == "count":
        return BIGINT
    if name in ("min", "max"):
        return argument
    if argument.is_decimal:
        if name == "sum":
            return SparkType.decimal(argument.precision + _WIDER, argument.scale)
        is_exact = argument.precision + _WIDER <= _MOST_DIGITS and averages_exactly(argument)
        return SparkType.decimal(argument.precision + 4, argument.scale + 4) if is_exact else None
    if not argument.is_integral:
        return None
    return BIGINT if name == "sum" else DOUBLE


def _argument_type(name: str, result: SparkType | None) -> SparkType | None:
    """The type of the values of which an aggregate has this type; None where it does not tell."""
    if result is None or name in ("min", "max"):
        return result
    if result.is_decimal:
        digits, places = (_WIDER, 0) if name == "sum" else (4, 4)
        is_told = digits < result.precision < _MOST_DIGITS and result.scale >= places
        return SparkType.decimal(result.precision - digits, result.scale - places) if is_told else None
    return BIGINT if name == "sum" and result.is_integral else None
