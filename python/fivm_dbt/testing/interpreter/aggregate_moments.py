"""Variances, correlations and regressions come from their definition, in doubles, in two passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fivm_dbt.testing.interpreter.aggregates import Call, Fold, aggregate
from fivm_dbt.testing.interpreter.casts import cast
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.scope import Expression
from fivm_dbt.testing.interpreter.types import BIGINT, DOUBLE, Type
from fivm_dbt.testing.interpreter.values import Row, Value

Built = tuple[Type, Fold]


def _columns(
    arguments: list[Expression], call: Call, width: int
) -> Callable[[list[Row]], list[tuple[float, ...]]]:
    """Rows without NULL, as doubles."""
    if len(arguments) != width or not all(a.type.is_numeric for a in arguments):
        raise NotUnderstood(f"{call.name} of {', '.join(str(a.type) for a in arguments)}", call.node)
    types = [a.type for a in arguments]
    return lambda rows: [
        tuple(cast(v, t, DOUBLE) for v, t in zip(row, types, strict=True)) for row in rows if None not in row
    ]


def _power(values: list[float], order: int) -> float:
    """The sum of the powers of the distances from the mean."""
    mean = math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan
    return math.fsum((v - mean) ** order for v in values) if not math.isnan(mean) else math.nan


@aggregate("VARIANCE", "VAR_SAMP", "VAR_POP", "STDDEV", "STD", "STDDEV_SAMP", "STDDEV_POP")
def variance(arguments: list[Expression], call: Call) -> Built:
    numbers = _columns(arguments, call, 1)
    is_population, is_root = call.name.endswith("_POP"), call.name.startswith("STD")

    def of(rows: list[Row]) -> Value:
        values = [x for (x,) in numbers(rows)]
        count = len(values) if is_population else len(values) - 1
        if not values or count == 0:
            return None
        found = _power(values, 2) / count
        return math.sqrt(found) if is_root else found

    return DOUBLE, of


@aggregate("SKEWNESS", "KURTOSIS")
def shape(arguments: list[Expression], call: Call) -> Built:
    numbers = _columns(arguments, call, 1)

    def of(rows: list[Row]) -> Value:
        values = [x for (x,) in numbers(rows)]
        if not values:
            return None
        count, second = len(values), _power(values, 2)
        if second == 0:
            return None
        if call.name == "SKEWNESS":
            return math.sqrt(count) * _power(values, 3) / math.sqrt(second**3)
        return count * _power(values, 4) / (second * second) - 3.0

    return DOUBLE, of


def _products(pairs: Sequence[tuple[float, ...]]) -> tuple[float, float, float, float, float]:
    """Means of both, sums of squares of both, and of products."""
    xs, ys = [p[0] for p in pairs], [p[1] for p in pairs]
    mx, my = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    both = math.fsum((x - mx) * (y - my) for x, y in pairs)
    return mx, my, _power(xs, 2), _power(ys, 2), both


@aggregate("CORR", "COVAR_POP", "COVAR_SAMP")
def covariance(arguments: list[Expression], call: Call) -> Built:
    numbers = _columns(arguments, call, 2)

    def of(rows: list[Row]) -> Value:
        pairs = numbers(rows)
        if not pairs or (len(pairs) == 1 and call.name != "COVAR_POP"):
            return None
        _, _, xx, yy, xy = _products(pairs)
        if call.name == "CORR":
            return None if xx == 0 or yy == 0 else xy / math.sqrt(xx * yy)
        return xy / (len(pairs) if call.name == "COVAR_POP" else len(pairs) - 1)

    return DOUBLE, of


_REGRESSIONS: dict[str, Callable[[float, float, float, float, float], float | None]] = {
    "REGR_AVGX": lambda mx, my, xx, yy, xy: mx,
    "REGR_AVGY": lambda mx, my, xx, yy, xy: my,
    "REGR_SXX": lambda mx, my, xx, yy, xy: xx,
    "REGR_SYY": lambda mx, my, xx, yy, xy: yy,
    "REGR_SXY": lambda mx, my, xx, yy, xy: xy,
    "REGR_SLOPE": lambda mx, my, xx, yy, xy: xy / xx if xx else None,
    "REGR_INTERCEPT": lambda mx, my, xx, yy, xy: my - xy / xx * mx if xx else None,
    "REGR_R2": lambda mx, my, xx, yy, xy: None if not xx else 1.0 if not yy else xy * xy / (xx * yy),
}


@aggregate(*_REGRESSIONS, "REGR_COUNT")
def regression(arguments: list[Expression], call: Call) -> Built:
    """``f(y, x)``: the second argument is the independent one."""
    numbers = _columns(arguments, call, 2)
    if call.name == "REGR_COUNT":
        return BIGINT, lambda rows: len(numbers(rows))
    function = _REGRESSIONS[call.name]

    def of(rows: list[Row]) -> Value:
        pairs = [(x, y) for y, x in numbers(rows)]
        return function(*_products(pairs)) if pairs else None

    return DOUBLE, of
