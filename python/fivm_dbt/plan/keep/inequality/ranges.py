"""Values of R and outer values lie in buckets on several levels, where one order can number both."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.buckets import BITS, BUCKET, LEVEL, PARENT, Buckets
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.scalar import ColumnId, Scalar, as_type, column_ast
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.plan.keep.inequality.correlation import Correlation, Operator, common_type

_DIGITS = 18
"""A bigint has room for so many decimal digits."""


@dataclass(frozen=True)
class Spread:
    """How values of a common ``type`` are numbered by bigints in their order, and how many levels these need."""

    type: SparkType
    levels: int

    def code(self, value: Scalar) -> Scalar:
        node, text = value.ast(), self.type.text
        if self.type.is_decimal:
            # Exact: as many digits as the numbers have, the point moved behind the last one.
            scaled = as_type(node, text)
            shift = SparkType.decimal(self.type.scale + 1, 0)
            power = as_type(exp.Literal.number(10**self.type.scale), shift.text)
            node = exp.Mul(this=scaled, expression=power)
        elif text == "date":
            node = exp.Anonymous(this="UNIX_DATE", expressions=[node])
        elif text == "timestamp":
            node = exp.Anonymous(this="UNIX_MICROS", expressions=[node])
        return Scalar(as_type(node, BIGINT.text))


def spread_of(found: Correlation) -> tuple[Spread | None, str | None]:
    """How both sides are numbered, or why they cannot be."""
    types = _compared_types(found)
    if types is None:
        return None, "an expression is compared, not a column on either side"
    common = common_type(*types)
    shown = " with ".join(dict.fromkeys(t.text for t in types))
    if common is None:
        return None, f"{shown} cannot be numbered in one order"
    if common.is_decimal:
        if common.precision > _DIGITS:
            return None, f"{shown} has more than {_DIGITS} digits"
        bits = (10**common.precision).bit_length() + 1
    elif common.text in ("date", "timestamp"):
        bits = {"date": 24, "timestamp": 64}[common.text]
    elif common.is_integral:
        bits = max({"tinyint": 8, "smallint": 16, "int": 32}.get(t.text, 64) for t in types)
    else:
        return None, f"{shown} has no floor"
    return Spread(common, -(-bits // BITS)), None


def _compared_types(found: Correlation) -> tuple[SparkType, SparkType] | None:
    if not (found.value.is_column and found.outer.is_column):
        return None
    types = found.types
    return types[next(iter(found.value.columns))], types[next(iter(found.outer.columns))]


def items_of(
    node: Node, columns: frozenset[ColumnId], alias: str, taken: tuple[str, ...] = ()
) -> tuple[tuple[Item, ...], dict[ColumnId, Scalar]]:
    """Some columns of ``node`` under names of their own, none of those ``taken``, and what they mean by then."""
    items: list[Item] = []
    meaning: dict[ColumnId, Scalar] = {}
    for f in node.fields:
        if f.id in columns:
            items.append(
                Item(unique_name(storable(f.name), {*taken, *(i.name for i in items)}), f.scalar, f.type)
            )
            meaning[f.id] = Scalar.column(alias, items[-1].name)
    return tuple(items), meaning


def bucketed(node: Node, code: Scalar, levels: int, alias: str) -> tuple[Buckets, dict[ColumnId, Scalar]]:
    """All rows of ``node`` in the buckets of ``code``, and what its columns are called there."""
    items, meaning = items_of(node, node.ids, alias, (LEVEL, PARENT, BUCKET))
    return Buckets(node, alias, items, code, levels), meaning


def beside(operator: Operator, inner: str, outer: str) -> Scalar:
    """``bucket θ own bucket``; what may be equal is so on the finest level, where a bucket is a value."""
    strict = {"<": exp.LT, ">": exp.GT}[operator[0]]
    bucket, own = column_ast(inner, BUCKET), column_ast(outer, BUCKET)
    compared: exp.Expr = strict(this=bucket, expression=own)
    if operator.endswith("="):
        finest = exp.EQ(this=column_ast(inner, LEVEL), expression=exp.Literal.number(0))
        same = exp.and_(exp.EQ(this=bucket.copy(), expression=own.copy()), finest)
        compared = exp.paren(exp.or_(compared, same))
    return Scalar(compared)
