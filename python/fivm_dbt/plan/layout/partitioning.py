"""A column partitions a state, by the first rule that applies (also in docs/refresh.md):

1. ``fivm_partition_by``: an output column that is a key of the state, by its value, or an expression over such columns;
2. else the first key that is a date, or a timestamp truncated to a period: one partition per month of it (or per
   dbt's ``batch_size``), so that a late row touches one file and ten years are 120 partitions, not 3,650;
   of the matches of a pattern, which come in the order of time, any timestamp, by day where its parts are shorter;
3. else hash buckets over the whole key (``fivm_buckets``, or by the size of the inputs), so that a MERGE touches
   buckets and not the table; a global aggregate has one row and one bucket.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BINARY, DATE, INT, STRING, TIMESTAMP
from fivm_dbt.config import Config
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.part_columns import is_shorter_than_period
from fivm_dbt.ir.scalar import Scalar, as_type, column_ast
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.state import Partitioning
from fivm_dbt.sql.expressions import check_row_level
from fivm_dbt.sql.parse import parse
from fivm_dbt.sql.typing import Typer

_TRUNCATIONS = (exp.TimestampTrunc, exp.DateTrunc)


def choose_partitioning(
    keys: tuple[Item, ...],
    outputs: dict[str, str | None],
    config: Config,
    typer: Typer,
    is_global: bool,
    *,
    part_length: Length | None = None,
) -> Partitioning:
    """The partitioning of a state with these keys; ``part_length`` are the parts of the pattern whose rows they are.

    ``outputs`` maps each output column (lower case) to the key that it shows, or None where it shows something else.
    Raises FIVM202 when ``fivm_partition_by`` names something that is no key.
    """
    if config.fivm_partition_by:
        return _given(config.fivm_partition_by, keys, outputs, typer)
    if is_global or not keys:
        return Partitioning("bucket", None, INT, "one row, one bucket", 1)
    for key in keys:
        if is_period(key.type, key.value):
            return by_period(key, config.batch_size or "month")
    for key in keys:
        if part_length is not None and key.type.is_temporal:
            return by_period(
                key, config.batch_size or ("day" if is_shorter_than_period(part_length) else "month")
            )
    return Partitioning(
        "bucket", None, INT, "hash of the key: no key is a date or a truncated time", config.fivm_buckets
    )


def by_period(key: Item, unit: str) -> Partitioning:
    """Partitions by the periods of a key that is a time."""
    expression, type_ = _period(key, unit)
    return Partitioning("time", expression, type_, f"{unit} of key {key.name}")


def is_period(type_: SparkType, value: Scalar) -> bool:
    """Whether a key of this type and value is a date, or a timestamp truncated to a period or to a window's bounds."""
    is_start = isinstance(value.ast(), _TRUNCATIONS) or is_bound_of_window(value)
    return type_ == DATE or (type_.is_temporal and is_start)


def is_bound_of_window(value: Scalar) -> bool:
    """Whether a value is the start or the end of a window of time."""
    ast = value.ast()
    return isinstance(ast, exp.Anonymous) and ast.name.upper() == "TIMESTAMP_MICROS"


def _period(key: Item, unit: str) -> tuple[Scalar, SparkType]:
    """The start of the period of a key column."""
    column = column_ast("", key.name)
    if unit == "hour" and key.type != DATE:
        return Scalar(exp.func("date_trunc", exp.Literal.string("HOUR"), column, dialect="spark")), TIMESTAMP
    if unit in ("hour", "day"):
        return Scalar(column if key.type == DATE else as_type(column, "date")), DATE
    word = {"month": "MM", "year": "YEAR"}[unit]
    return Scalar(exp.func("trunc", column, exp.Literal.string(word), dialect="spark")), DATE


def _given(text: str, keys: tuple[Item, ...], outputs: dict[str, str | None], typer: Typer) -> Partitioning:
    try:
        ast = parse(f"select {text}").selects[0].unalias()
        check_row_level(ast)
    except FivmError as error:
        raise FivmError(
            "FIVM202", f"fivm_partition_by: {text}: {error.message}", remedy="name an output column"
        ) from None
    types = {key.name: key.type for key in keys}
    shown = [name for name, key in outputs.items() if key is not None]
    for column in list(ast.find_all(exp.Column)):
        name = column.name.lower()
        key = outputs.get(name)
        if key is None:
            why = (
                "is not in the output"
                if name not in outputs
                else "is not a key of the result: its value changes"
            )
            raise FivmError(
                "FIVM202",
                f"fivm_partition_by: {column.name} {why} ({expected_one_of(shown) if shown else 'there is no key'})",
                remedy="name an output column that is grouped by",
            )
        replacement = column_ast("", key)
        if column is ast:
            ast = replacement
        else:
            column.replace(replacement)
    scalar = Scalar(ast)
    type_ = typer.types([scalar], {("", name): type_ for name, type_ in types.items()})[0]
    if type_ is None:
        raise FivmError(
            "FIVM202", f"fivm_partition_by: the type of {text} is unknown", remedy="wrap it in CAST"
        )
    if type_ == BINARY:
        # Bytes need not be text.
        scalar, type_ = Scalar(exp.Anonymous(this="HEX", expressions=[scalar.ast()])), STRING
    return Partitioning("value", scalar, type_, f"fivm_partition_by: {text}")


def by_number(column: str) -> Partitioning:
    """A state that is partitioned by a number which its rows have."""
    return Partitioning("value", Scalar.column("", column), BIGINT, f"the value of {column}")
