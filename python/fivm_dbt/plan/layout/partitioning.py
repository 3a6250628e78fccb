"""A column partitions a state, by the first rule that applies (also in docs/refresh.md):

1. ``fivm_partition_by``: an output column that is a key of the state, by its value, or an expression over such columns;
2. else the first key that is a date, or a timestamp truncated to a period: one partition per month of it (or per
   dbt's ``batch_size``), so that a late row touches one file and ten years are 120 partitions, not 3,650; one per year
   where ``auto`` expects few rows a month, as a file takes its time however few they are;
   of the matches of a pattern, which come in the order of time, any timestamp, by day where its parts are shorter;
3. else the first key that is counted up, as an order's number is, by ranges of it
   (:mod:`fivm_dbt.plan.layout.key_ranges`): rows that come together lie together;
4. else hash buckets over the whole key (``fivm_buckets``, or by the size of the inputs), so that a MERGE touches
   buckets and not the table; a global aggregate has one row and one bucket.
"""

from __future__ import annotations

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BINARY, DATE, INT, STRING, TIMESTAMP
from fivm_dbt.config import Config
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.build import call, truncated
from fivm_dbt.ir.calls import Call
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.part_columns import is_shorter_than_period
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.time_windows import is_bound_of_window
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.state import Partitioning
from fivm_dbt.sql.partition_by import over_keys
from fivm_dbt.sql.typing import Typer

FEW_A_MONTH = 20_000
"""Rows. To read and to write a file takes as long as some thousand of them."""

_DAYS = 30

_TRUNCATIONS = ("timestamp_trunc", "date_trunc")
"""What the functions that truncate times are called when they have been read."""


def choose_partitioning(
    keys: tuple[Item, ...],
    outputs: dict[str, str | None],
    config: Config,
    typer: Typer,
    is_global: bool,
    *,
    part_length: Length | None = None,
    rows_a_day: float | None = None,
    key_range: tuple[str, int] | None = None,
) -> Partitioning:
    """The partitioning of a state with these keys; ``part_length`` are the parts of the pattern whose rows they are.

    ``rows_a_day`` are those that it is expected to have of each value of a date, None where nobody knows.
    ``key_range`` is a key that is counted up, and how long its ranges are.
    ``outputs`` maps each output column (lower case) to the key that it shows, or None where it shows something else.
    Raises FIVM202 when ``fivm_partition_by`` names something that is no key.
    """
    if config.fivm_partition_by:
        return _given(config.fivm_partition_by, keys, outputs, typer)
    if is_global or not keys:
        return Partitioning("bucket", None, INT, "one row, one bucket", 1)
    for key in keys:
        if is_period(key.type, key.value):
            has_few = rows_a_day is not None and _DAYS * rows_a_day < FEW_A_MONTH
            return by_period(key, config.batch_size or ("year" if has_few else "month"))
    for key in keys:
        if part_length is not None and key.type.is_temporal:
            return by_period(
                key, config.batch_size or ("day" if is_shorter_than_period(part_length) else "month")
            )
    if key_range is not None and config.fivm_buckets is None:
        return by_range(*key_range)
    return Partitioning(
        "bucket", None, INT, "hash of the key: no key is a date or a truncated time", config.fivm_buckets
    )


def by_range(column: str, width: int) -> Partitioning:
    """Partitions by ranges of so many numbers of a key."""
    return Partitioning(
        "value",
        Scalar.column("", column).in_ranges_of(width),
        BIGINT,
        f"ranges of {width:,} numbers of key {column}, which is counted up",
        ranges_of=column,
    )


def by_period(key: Item, unit: str) -> Partitioning:
    """Partitions by the periods of a key that is a time."""
    expression, type_ = _period(key, unit)
    return Partitioning("time", expression, type_, f"{unit} of key {key.name}", unit=unit)


def is_period(type_: SparkType, value: Scalar) -> bool:
    """Whether a key of this type and value is a date, or a timestamp truncated to a period or to a window's bounds."""
    is_start = Call.of(value).name in _TRUNCATIONS or is_bound_of_window(value)
    return type_ == DATE or (type_.is_temporal and is_start)


def _period(key: Item, unit: str) -> tuple[Scalar, SparkType]:
    """The start of the period of a key column."""
    column = Scalar.column("", key.name)
    if unit == "hour" and key.type != DATE:
        return truncated(column, unit), TIMESTAMP
    if unit in ("hour", "day"):
        return column if key.type == DATE else column.cast("date"), DATE
    return truncated(column, unit), DATE


def _given(text: str, keys: tuple[Item, ...], outputs: dict[str, str | None], typer: Typer) -> Partitioning:
    scalar = over_keys(text, outputs)
    types = {key.name: key.type for key in keys}
    type_ = typer.types([scalar], {("", name): type_ for name, type_ in types.items()})[0]
    if type_ is None:
        raise FivmError(
            "FIVM202", f"fivm_partition_by: the type of {text} is unknown", remedy="wrap it in CAST"
        )
    if type_ == BINARY:
        # Bytes need not be text.
        scalar, type_ = call("HEX", scalar), STRING
    return Partitioning("value", scalar, type_, f"fivm_partition_by: {text}")


def by_number(column: str) -> Partitioning:
    """A state that is partitioned by a number which its rows have."""
    return Partitioning("value", Scalar.column("", column), BIGINT, f"the value of {column}")
