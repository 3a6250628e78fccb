"""The interpreter knows these aggregates, one by one."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce

from fivm_dbt.testing.interpreter.aggregates import Call, Fold, aggregate
from fivm_dbt.testing.interpreter.casts import cast
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import constant_of
from fivm_dbt.testing.interpreter.scope import Expression
from fivm_dbt.testing.interpreter.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, Type, array, decimal
from fivm_dbt.testing.interpreter.values import (
    EXACT,
    Row,
    Value,
    compare,
    equal,
    key,
    rounded,
    sorted_rows,
    wrapped,
)

Built = tuple[Type, Fold]


def _one(arguments: list[Expression], call: Call) -> Type:
    if len(arguments) != 1:
        raise NotUnderstood(f"{call.name} of {len(arguments)} arguments", call.node)
    return arguments[0].type


def _there(rows: list[Row]) -> list[Value]:
    return [row[0] for row in rows if row[0] is not None]


@aggregate("COUNT")
def count(arguments: list[Expression], call: Call) -> Built:
    return BIGINT, lambda rows: sum(None not in row for row in rows)


@aggregate("COUNT_IF")
def count_if(arguments: list[Expression], call: Call) -> Built:
    return BIGINT, lambda rows: sum(row[0] is True for row in rows)


def _number(arguments: list[Expression], call: Call) -> Type:
    type_ = _one(arguments, call)
    if type_ in (STRING, NULL):
        return DOUBLE
    if not type_.is_numeric:
        raise NotUnderstood(f"{call.name} of {type_}", call.node)
    return type_


@aggregate("SUM", "TRY_SUM")
def sum_(arguments: list[Expression], call: Call) -> Built:
    """Integers wrap around (TRY_SUM is NULL), a decimal with more digits than fit is NULL."""
    type_, source = _number(arguments, call), arguments[0].type
    is_tried = call.name == "TRY_SUM"

    if type_.is_integral:

        def of_integers(rows: list[Row]) -> Value:
            values = _there(rows)
            total = sum(values)
            if not values or (is_tried and wrapped(total, BIGINT) != total):
                return None
            return wrapped(total, BIGINT)

        return BIGINT, of_integers
    if type_.is_decimal:
        result = decimal(type_.args[0] + 10, type_.args[1])
        return result, lambda rows: rounded(_exact_sum(values), result) if (values := _there(rows)) else None
    return (
        DOUBLE,
        lambda rows: (
            _float_sum(values)
            if (values := [cast(v, source, DOUBLE) for v in _there(rows)]) and None not in values
            else _float_sum([v for v in values if v is not None])
        ),
    )


def _exact_sum(values: list[Decimal]) -> Decimal:
    return reduce(EXACT.add, values, Decimal(0))


def _float_sum(values: list[float]) -> float | None:
    return sum(values, 0.0) if values else None


@aggregate("AVG", "MEAN", "TRY_AVG")
def avg(arguments: list[Expression], call: Call) -> Built:
    type_, source = _number(arguments, call), arguments[0].type
    if type_.is_decimal:
        result = decimal(type_.args[0] + 4, type_.args[1] + 4)
        total = decimal(type_.args[0] + 10, type_.args[1])

        def of_decimals(rows: list[Row]) -> Value:
            values = _there(rows)
            whole = rounded(_exact_sum(values), total) if values else None
            return None if whole is None else rounded(_divided(whole, len(values)), result)

        return result, of_decimals

    def of(rows: list[Row]) -> Value:
        values = [f for v in _there(rows) if (f := cast(v, source, DOUBLE)) is not None]
        return sum(values) / len(values) if values else None

    return DOUBLE, of


def _divided(value: Decimal, number: int) -> Decimal:
    """As Spark divides decimals: to 38 digits after the point."""
    exact = EXACT.divide(value, Decimal(number))
    return exact.quantize(Decimal(1).scaleb(-38), rounding=ROUND_HALF_UP, context=EXACT)


@aggregate("MIN", "MAX")
def extreme(arguments: list[Expression], call: Call) -> Built:
    type_ = _one(arguments, call)
    sign = 1 if call.name == "MAX" else -1
    return type_, lambda rows: _best([(v, v) for v in _there(rows)], sign)


@aggregate("MAX_BY", "MIN_BY")
def extreme_by(arguments: list[Expression], call: Call) -> Built:
    """The first of the values whose other value is greatest: with ties there is no one answer."""
    if len(arguments) != 2:
        raise NotUnderstood(call.name, call.node)
    sign = 1 if call.name == "MAX_BY" else -1

    def of(rows: list[Row]) -> Value:
        pairs = [(order, value) for value, order in rows if order is not None]
        best = _best([(o, o) for o, _ in pairs], sign)
        found = [value for order, value in pairs if equal(order, best)]
        if len({key(v) for v in found}) > 1:
            raise NotUnderstood(f"{call.name} of tied rows", call.node)
        return found[0] if found else None

    return arguments[0].type, of


def _best(pairs: list[tuple[Value, Value]], sign: int) -> Value:
    best: tuple[Value, Value] | None = None
    for pair in pairs:
        if best is None or compare(pair[0], best[0]) * sign > 0:
            best = pair
    return None if best is None else best[1]


@aggregate("BOOL_AND", "EVERY")
def bool_and(arguments: list[Expression], call: Call) -> Built:
    return BOOLEAN, lambda rows: all(values) if (values := _there(rows)) else None


@aggregate("BOOL_OR", "SOME", "ANY")
def bool_or(arguments: list[Expression], call: Call) -> Built:
    return BOOLEAN, lambda rows: any(values) if (values := _there(rows)) else None


@aggregate("BIT_AND", "BIT_OR", "BIT_XOR")
def bits(arguments: list[Expression], call: Call) -> Built:
    type_ = _one(arguments, call)
    name = {"BIT_AND": "__and__", "BIT_OR": "__or__", "BIT_XOR": "__xor__"}[call.name]
    return (
        type_,
        lambda rows: reduce(lambda a, b: getattr(a, name)(b), values) if (values := _there(rows)) else None,
    )


@aggregate("COLLECT_LIST", "ARRAY_AGG", "COLLECT_SET")
def collect(arguments: list[Expression], call: Call) -> Built:
    """A list has no order of its own; over nothing it is empty."""
    type_ = _one(arguments, call)

    def of(rows: list[Row]) -> Value:
        values = _there(rows)
        if call.name == "COLLECT_SET":
            values = list({key(v): v for v in reversed(values)}.values())[::-1]
        return tuple(values)

    return array(type_), of


@aggregate("LISTAGG", "STRING_AGG")
def listagg(arguments: list[Expression], call: Call) -> Built:
    if arguments[0].type != STRING:
        raise NotUnderstood(f"{call.name} of {arguments[0].type}", call.node)
    separator = constant_of(arguments[1], call.arguments[1]) if len(arguments) > 1 else ""
    if call.order is None:
        raise NotUnderstood(f"{call.name} without an order", call.node)
    return STRING, lambda rows: separator.join(values) if (values := _there(rows)) else None


@aggregate("MODE")
def mode(arguments: list[Expression], call: Call) -> Built:
    """The most frequent value. Of several only ``mode(x, true)`` and WITHIN GROUP say which."""
    is_least = len(arguments) == 2 and constant_of(arguments[1], call.arguments[1]) is True
    is_ordered = call.order is not None

    def of(rows: list[Row]) -> Value:
        values = _there(rows)
        counts: dict[Value, int] = {}
        for value in values:
            counts[key(value)] = counts.get(key(value), 0) + 1
        tied = [v for v in values if counts[key(v)] == max(counts.values())]
        if not tied:
            return None
        if len({key(v) for v in tied}) > 1 and not (is_least or is_ordered):
            raise NotUnderstood("MODE of tied values", call.node)
        return tied[0] if is_ordered else _best([(v, v) for v in tied], -1)

    return arguments[0].type, of


@aggregate("PERCENTILE", "MEDIAN", "PERCENTILE_CONT", "PERCENTILE_DISC")
def percentile(arguments: list[Expression], call: Call) -> Built:
    """Between the two values around the place, in doubles; PERCENTILE_DISC is one of the values."""
    source = arguments[0].type
    if not source.is_numeric or len(arguments) > 2 or call.is_distinct:
        raise NotUnderstood(f"{call.name} of {source}", call.node)
    given = arguments[1] if call.name != "MEDIAN" else None
    share = 0.5 if given is None else constant_of(given, call.arguments[-1])
    if not isinstance(share, (float, Decimal, int)):
        raise NotUnderstood(f"{call.name} at several places", call.node)
    order = call.order.expressions[0] if call.order is not None else None
    descending = order is not None and bool(order.args.get("desc"))

    def of(rows: list[Row]) -> Value:
        lines = [(cast(row[0], source, DOUBLE),) for row in rows if row[0] is not None]
        values = [v for (v,) in sorted_rows(lines, [(0, descending, True)], lambda r: r)]
        if not values:
            return None
        place = float(share) * (len(values) - 1)
        low, high = math.floor(place), math.ceil(place)
        if call.name == "PERCENTILE_DISC":
            return values[max(0, math.ceil(float(share) * len(values) - 1e-12) - 1)]
        if low == high:
            return values[low]
        return (high - place) * values[low] + (place - low) * values[high]

    return DOUBLE, of


@aggregate("ANY_VALUE", "FIRST", "LAST", "FIRST_VALUE", "LAST_VALUE")
def first(arguments: list[Expression], call: Call) -> Built:
    """Over a group they depend on the order of rows: there is one answer where all values are the same."""
    ignores = call.ignores_nulls or (
        len(arguments) == 2 and constant_of(arguments[1], call.arguments[1]) is True
    )

    def of(rows: list[Row]) -> Value:
        values = [row[0] for row in rows if not (ignores and row[0] is None)]
        if len({key(v) for v in values}) > 1:
            raise NotUnderstood(f"{call.name} of several values", call.node)
        return values[0] if values else None

    return arguments[0].type, of


@aggregate("APPROX_COUNT_DISTINCT")
def approximate(arguments: list[Expression], call: Call) -> Built:
    """Of a few values it is exact."""
    return BIGINT, lambda rows: len({key(v) for v in _there(rows)})
