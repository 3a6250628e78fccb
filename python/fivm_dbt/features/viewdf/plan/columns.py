"""INITIALIZE and UPDATE of a viewdf model agree on columns, and a state keeps these."""

from __future__ import annotations

from collections.abc import Sequence

from fivm_dbt.catalog import Column
from fivm_dbt.catalog.types import TIMESTAMP, SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.layout import written
from fivm_dbt.plan.layout.written import Shown
from fivm_dbt.sql.parse import parse


def kept_columns(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns of a query but for PART_TIMESTAMP, which came with the star of another viewdf model."""
    kept = tuple(c for c in columns if c.name.lower() != PART_TIMESTAMP)
    names = [c.name.lower() for c in kept]
    double = sorted({n for n in names if names.count(n) > 1})
    if double:
        raise FivmError(
            "FIVM112", f"several columns are called {', '.join(double)}", remedy="give each its own alias"
        )
    for column in kept:
        if not column.type.is_groupable:
            raise FivmError(
                "FIVM111",
                f"{column.name} has type {column.type}, of which a part cannot be compared",
                remedy="CAST it, or leave it out",
            )
    return kept


def explicit_names(sql: str) -> tuple[str, ...] | None:
    """The names of a query's columns, None where a star has them."""
    query = parse(sql)
    if query.is_star:
        return None
    return tuple(s.alias_or_name for s in query.selects if s.alias_or_name.lower() != PART_TIMESTAMP)


def check_same_names(initial: Sequence[str], updated: Sequence[str]) -> None:
    """FIVM205 unless both queries give the same columns in the same order."""
    one, other = ([name.lower() for name in names] for names in (initial, updated))
    if one != other:
        raise FivmError(
            "FIVM205",
            f"INITIALIZE gives the columns {', '.join(one)}, and UPDATE {', '.join(other)}",
            remedy="give both queries the same columns, in the same order",
        )


def wider_type(one: SparkType, other: SparkType, name: str) -> SparkType:
    """The type that holds both."""
    integral = ("tinyint", "smallint", "int", "bigint")
    if one == other or other.text == "void":
        return one
    if one.text == "void":
        return other
    if one.text in integral and other.text in integral:
        return max(one, other, key=lambda t: integral.index(t.text))
    if one.is_decimal and other.is_decimal:
        digits = max(one.precision - one.scale, other.precision - other.scale)
        scale = max(one.scale, other.scale)
        return SparkType.decimal(digits + scale, scale)
    if {one.text, other.text} == {"float", "double"}:
        return SparkType("double")
    raise FivmError(
        "FIVM205",
        f"column {name} is {one} in INITIALIZE and {other} in UPDATE",
        remedy="CAST it to one type in both",
    )


def stored_columns(columns: tuple[Column, ...]) -> tuple[tuple[Item, ...], Shown]:
    """The state's columns and what the model shows of them, with the start of a row's part behind the others."""
    items, shown = written.stored_columns(columns, "part", also=(PART_TIMESTAMP,))
    begins = Item(PART_TIMESTAMP, Scalar.column("part", PART_TIMESTAMP), TIMESTAMP)
    return (*items, begins), (*shown, (PART_TIMESTAMP, Scalar.column("", PART_TIMESTAMP)))
