"""Arithmetic has types by numbers, times and intervals."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DATE, DOUBLE, TIMESTAMP
from fivm_dbt.functions.widening import VOID, decimal_result, widest

_DAYS = ("interval day", "interval year", "interval month", "interval year to month")
Operand = tuple[SparkType | None, exp.Expr]


def operation(operator: type[exp.Expr], one: Operand, other: Operand) -> SparkType | None:
    """The type of ``one operator other``, each with its type: literals beside decimals count their digits."""
    left, right = one[0], other[0]
    if left is None or right is None:
        return None
    if operator in (exp.Add, exp.Sub) and (left.is_temporal or right.is_temporal):
        return _of_times(operator, left, right)
    if left == VOID or right == VOID:
        left, right = (right, right) if left == VOID else (left, left)
    if not (left.is_numeric and right.is_numeric):
        return None
    if operator is exp.IntDiv:
        return BIGINT
    if left.is_floating or right.is_floating:
        both_float = left.text == right.text == "float" and operator is not exp.Div
        return SparkType("float") if both_float else DOUBLE
    if left.is_integral and right.is_integral:
        return DOUBLE if operator is exp.Div else widest(left, right)
    return decimal_result(operator, _as_decimal(left, one[1]), _as_decimal(right, other[1]))


def _of_times(operator: type[exp.Expr], left: SparkType, right: SparkType) -> SparkType | None:
    """``date ± days``, ``time ± interval`` and ``time - time``."""
    if left.text == "date" and right.is_integral:
        return DATE
    if right.text.startswith("interval"):
        return _moved(left, right)
    if left.text.startswith("interval") and operator is exp.Add:
        return _moved(right, left)
    if operator is exp.Sub and left.is_temporal and right.is_temporal:
        return SparkType("interval day" if left == right == DATE else "interval day to second")
    return None


def _moved(time: SparkType, interval: SparkType) -> SparkType:
    """A date that is moved by less than days becomes an instant."""
    return TIMESTAMP if time == DATE and interval.text not in _DAYS else time


def _as_decimal(type_: SparkType, node: exp.Expr) -> SparkType:
    """An integral operand beside a decimal: a literal takes as many digits as it has."""
    literal = node.unnest()
    if type_.is_integral and isinstance(literal, exp.Literal):
        return SparkType.decimal(len(literal.this), 0)
    return type_


_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_SMALLER = {"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND", "QUARTER": "MONTH"}


def interval_type(node: exp.Interval) -> SparkType | None:
    """The type of an interval of one unit that is written out, ``INTERVAL 3 DAYS``; of several it is not known here."""
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var):
        return None
    name = unit.name.upper()
    name = name.removesuffix("S")
    name = _SMALLER.get(name, name)
    return SparkType(f"interval {name.lower()}") if name in _UNITS else None
