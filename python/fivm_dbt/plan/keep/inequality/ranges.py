"""Values of R and outer values lie in buckets on several levels, where one order can number both."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.buckets import BITS, BUCKET, LEVEL, PARENT, Buckets
from fivm_dbt.ir.build import all_of, any_of, call
from fivm_dbt.ir.comparison import Comparison, Operator
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.plan.keep.inequality.correlation import Correlation, common_type

_DIGITS = 18
"""A bigint has room for so many decimal digits."""


@dataclass(frozen=True)
class Spread:
    """How values of a common ``type`` are numbered by bigints in their order, and how many levels these need."""

    type: SparkType
    levels: int

    def code(self, value: Scalar) -> Scalar:
        text = self.type.text
        if self.type.is_decimal:
            # Exact: as many digits as the numbers have, the point moved behind the last one.
            shift = SparkType.decimal(self.type.scale + 1, 0)
            value = value.cast(text).times(Scalar.number(10**self.type.scale).cast(shift.text))
        elif text in ("date", "timestamp"):
            value = call("UNIX_DATE" if text == "date" else "UNIX_MICROS", value)
        return value.cast(BIGINT.text)


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
    bucket, own = Scalar.column(inner, BUCKET), Scalar.column(outer, BUCKET)
    strict = Comparison(bucket, "<" if operator[0] == "<" else ">", own).scalar
    if not operator.endswith("="):
        return strict
    finest = Comparison(Scalar.column(inner, LEVEL), "=", Scalar.number(0)).scalar
    return any_of(strict, all_of(Comparison(bucket, "=", own).scalar, finest))
