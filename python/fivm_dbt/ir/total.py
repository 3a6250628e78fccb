"""Some conditions have a value for every row: whatever is compared, nothing in them stops a statement.

With ``spark.sql.ansi.enabled`` a cast or a division may stop one. A row that came and went between two refreshes is in
no recompute, so nothing that may stop may be asked of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import ColumnId, Scalar

_MOST_DIGITS = 38
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass(frozen=True)
class _Operand:
    """A column or a constant: the kind of its values, and the digits of a number before the point and behind it."""

    kind: str
    before: int = 0
    behind: int = 0
    text: str | None = None
    """The value of a constant text, which is compared with a date as a date."""

    def is_comparable(self, other: _Operand) -> bool:
        if self.kind == other.kind:
            return max(self.before, other.before) + max(self.behind, other.behind) <= _MOST_DIGITS
        texts = [each.text for each in (self, other) if each.text is not None]
        return {self.kind, other.kind} == {"text", "date"} and len(texts) == 1 and _is_date(texts[0])


def is_total(condition: Scalar, types: Mapping[ColumnId, SparkType]) -> bool:
    """Whether a condition over columns of these types compares them with each other or with constants, and no more.

    >>> types = {("a", "n"): SparkType("int"), ("a", "d"): SparkType("date"), ("a", "t"): SparkType("string")}
    >>> [is_total(Scalar.parse(text), types) for text in (
    ...     "a.n > 3 or a.d < date'2024-01-31' + interval 1 month", "a.t in ('x', 'y') and not a.n is null",
    ...     "a.t = 3", "10 / a.n > 1", "a.d = 'today'", "a.d >= '2024-01-31'", "length(a.t) = 1")]
    [True, True, False, False, False, True, False]
    """
    return _is_total(condition.ast(), types)


def _is_total(node: exp.Expr, types: Mapping[ColumnId, SparkType]) -> bool:
    if isinstance(node, (exp.Paren, exp.Not)):
        return _is_total(node.this, types)
    if isinstance(node, exp.Connector):
        return _is_total(node.left, types) and _is_total(node.right, types)
    if isinstance(node, exp.Is):
        return isinstance(node.this, exp.Column) and isinstance(node.expression, (exp.Null, exp.Boolean))
    if isinstance(node, _COMPARISONS):
        return _are_comparable([node.left, node.right], types)
    if isinstance(node, exp.Between):
        return _are_comparable([node.this, node.args["low"], node.args["high"]], types)
    if isinstance(node, exp.In):
        return bool(node.expressions) and _are_comparable([node.this, *node.expressions], types)
    operand = _operand(node, types)
    return operand is not None and operand.kind == "boolean"


def _are_comparable(nodes: list[exp.Expr], types: Mapping[ColumnId, SparkType]) -> bool:
    """Whether the first one is comparable with each of the others, and these with each other."""
    operands = [_operand(node, types) for node in nodes]
    known = [o for o in operands if o is not None]
    return len(known) == len(nodes) and all(a.is_comparable(b) for a in known for b in known if a is not b)


def _operand(node: exp.Expr, types: Mapping[ColumnId, SparkType]) -> _Operand | None:
    if isinstance(node, exp.Paren):
        return _operand(node.this, types)
    if isinstance(node, exp.Column):
        type_ = types.get((node.table, node.name))
        return None if type_ is None else _of_type(type_)
    if isinstance(node, exp.Boolean):
        return _Operand("boolean")
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return _operand(node.this, types)
    if isinstance(node, exp.Literal):
        return _Operand("text", text=node.name) if node.is_string else _number(node.name)
    return _Operand("date") if _is_constant_date(node) else None


def _of_type(type_: SparkType) -> _Operand | None:
    if type_.is_decimal or type_.is_integral:
        return _Operand("number", type_.precision - type_.scale, type_.scale)
    if type_.is_floating:
        return _Operand("floating")
    if type_.is_string and not type_.text.startswith(
        "char("
    ):  # compared with blanks behind it, in tables alone
        return _Operand("text")
    return _Operand(type_.text) if type_.is_temporal or type_.text == "boolean" else None


def _number(text: str) -> _Operand | None:
    before, _, behind = text.partition(".")
    return _Operand("number", len(before), len(behind)) if (before + behind).isdigit() else None


def _is_constant_date(node: exp.Expr) -> bool:
    """A date as a literal, or some years, months, weeks or days after or before one."""
    if isinstance(node, (exp.Add, exp.Sub)):
        moved = node.right
        number = moved.this if isinstance(moved, exp.Interval) else None
        is_near = isinstance(number, exp.Literal) and number.name.isdigit() and int(number.name) < 1000
        unit = moved.text("unit").upper() if isinstance(moved, exp.Interval) else ""
        return (
            is_near and unit.rstrip("S") in ("YEAR", "MONTH", "WEEK", "DAY") and _is_constant_date(node.left)
        )
    is_date = isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE
    return is_date and isinstance(node.this, exp.Literal) and _is_date(node.this.name)


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2024-01-31") and 1000 <= date.fromisoformat(text).year <= 8000
    except ValueError:
        return False
