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

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.frames import has_window
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.rings import components, finish
from fivm_dbt.rings.quotient import averages_exactly
from fivm_dbt.sql.functions import function_name

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
        ast = item.value.ast()
        if isinstance(ast, exp.Window):
            return self._function(ast, item.type, over)
        if ast.find(exp.Window) is None:
            return self._column(item.name, item.value, item.type, over)
        known = True

        def visit(node: exp.Expr) -> exp.Expr:
            nonlocal known
            if isinstance(node, exp.Window):
                value = self._function(node, None, over)
                known = known and value is not None
                return node if value is None else exp.paren(value.ast())
            if isinstance(node, exp.Column):
                own = Scalar(node)
                known = known and own in self.types
                return (
                    self._column(node.name, own, self.types[own], over).ast() if own in self.types else node
                )
            return node

        replaced = ast.transform(visit, copy=False)
        return Scalar(replaced) if known else None

    def _column(self, name: str, value: Scalar, type_: SparkType, over: str) -> Scalar:
        """A column of the window for a value, the same one for the same value."""
        found = next((i for i in self.items if i.value == value), None)
        if found is None:
            found = Item(unique_name(storable(name), {i.name.lower() for i in self.items}), value, type_)
            self.items.append(found)
        return Scalar.column(over, found.name)

    def _function(self, window: exp.Window, type_: SparkType | None, over: str) -> Scalar | None:
        """A window function of this type, where that is known, over the columns of the window ``over``."""
        function = window.this
        ignores_nulls = isinstance(function, exp.IgnoreNulls)
        if isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
            function = function.this
        name = function_name(function)
        if name in (*_FIRST, *_LAST):
            return self._end(window, name, Scalar(function.this.copy()), over, ignores_nulls=ignores_nulls)
        if ignores_nulls:
            return None
        if name in ("row_number", "rank"):
            return self._column(name, Scalar(window.copy()), INT, over)
        if name not in ("sum", "count", "avg", "min", "max") or isinstance(function.this, exp.Distinct):
            return None
        if name == "count" and (function.expressions or isinstance(function.this, (exp.Star, exp.Literal))):
            return None if function.expressions else self._column(name, Scalar(window.copy()), BIGINT, over)
        argument = self._argument(name, Scalar(function.this.copy()), type_)
        if argument is None:
            return None
        value, argument_type = argument
        result = _result(name, argument_type)
        if result is None:
            return None
        if name != "avg":
            return self._column(name, _over(window, name, value), result, over)
        call = AggregateCall(name, "avg", value, argument_type, result)
        total, present = components(call)
        sums = self._column("sum", _over(window, "sum", value), _result("sum", argument_type) or result, over)
        counts = self._column("count", _over(window, "count", value), BIGINT, over)
        return finish(call, {total: sums, present: counts}.__getitem__)

    def _end(
        self, window: exp.Window, name: str, value: Scalar, over: str, *, ignores_nulls: bool
    ) -> Scalar | None:
        """The value of the first row of a window, or with IGNORE NULLS of the first or last one that has a value."""
        type_ = self.types.get(value)
        if type_ is None or (name in _LAST and not ignores_nulls):
            return None
        row = self._row(window, value, type_)
        if row is None:
            return None
        struct, struct_type = row
        if ignores_nulls:
            struct = Scalar(exp.Case(ifs=[exp.If(this=_is_there(value), true=struct.ast())]))
        end = "min" if name in _FIRST else "max"
        found = self._column(end, _over(window, end, self._kept(struct, struct_type)), struct_type, over)
        return Scalar(exp.Dot(this=found.ast(), expression=exp.to_identifier(_VALUE)))

    def _row(self, window: exp.Window, value: Scalar, type_: SparkType) -> tuple[Scalar, SparkType] | None:
        """A row as a struct that is less where it comes first, its type; None where it could not be compared."""
        order = window.args.get("order")
        fields: list[tuple[str, exp.Expr, SparkType]] = []
        for number, by in enumerate(order.expressions if order is not None else [], start=1):
            key = Scalar(by.this.copy())
            key_type = self.types.get(key)
            if key_type is None or by.args.get("desc") or by.args.get("nulls_first") is False:
                return None
            # Engines do not agree on where NULL stands in a struct.
            fields.append((f"has_{number}", _is_there(key), BOOLEAN))
            fields.append((f"by_{number}", key.ast(), key_type))
        fields.append((_VALUE, value.ast(), type_))
        if len(fields) == 1 or any(not t.is_exact for _, _, t in fields):
            return None
        parts = [exp.PropertyEQ(this=exp.to_identifier(n), expression=v) for n, v, _ in fields]
        types = ",".join(f"{n}:{t.text}" for n, _, t in fields)
        return Scalar(exp.Struct(expressions=parts)), SparkType(f"struct<{types}>")

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
        if name == "count":
            value = Scalar(exp.Case(ifs=[exp.If(this=_is_there(value), true=exp.Literal.number(1))]))
        else:
            value = value.cast(type_.text)
        return self._kept(value, type_), type_

    def _kept(self, value: Scalar, type_: SparkType) -> Scalar:
        """An expression as a column of the rows below the window."""
        if value not in self.arguments:
            self.arguments[value] = (f"argument_{len(self.arguments) + 1}", type_)
        column = Scalar.column("", self.arguments[value][0])
        self.types[column] = type_
        return column


def _is_there(value: Scalar) -> exp.Expr:
    return exp.Is(this=exp.paren(value.ast()), expression=exp.Null()).not_()


def _over(window: exp.Window, name: str, value: Scalar) -> Scalar:
    """Another function over the rows of a window function."""
    call = exp.func(name.upper(), value.ast(), dialect="spark")
    copied = window.copy()
    copied.set("this", call)
    return Scalar(copied)


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
    # A mean of bigints may be of a sum that has no bigint.
    return BIGINT if name == "sum" else DOUBLE if argument != BIGINT else None


def _argument_type(name: str, result: SparkType | None) -> SparkType | None:
    """The type of the values of which an aggregate has this type; None where it does not tell."""
    if result is None or name in ("min", "max"):
        return result
    if result.is_decimal:
        digits, places = (_WIDER, 0) if name == "sum" else (4, 4)
        is_told = digits < result.precision < _MOST_DIGITS and result.scale >= places
        return SparkType.decimal(result.precision - digits, result.scale - places) if is_told else None
    return BIGINT if name == "sum" and result.is_integral else None
