"""SQL numbers parts and tells when they begin as Python does, on Spark and DuckDB, also after the seconds of an int."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession
from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.features.viewdf.plan.model import PART, period_of
from fivm_dbt.features.viewdf.spark.queries import made_parts
from fivm_dbt.ir.part_columns import part_of
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PARTITION
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.spark.part_time import counted, number_of, start_of

LENGTHS = [
    Length.of(text, zone)
    for text, zone in (
        ("minute", "UTC"), ("6 hours", "UTC"), ("day", "UTC"), ("week", "Europe/Vienna"), ("day", "Asia/Kolkata"),
        ("month", "UTC"), ("quarter", "America/New_York"), ("year", "Europe/Vienna"),
    )
]  # fmt: skip
MOMENTS = [
    datetime(1969, 12, 31, 23, 59, 59, tzinfo=timezone.utc),
    datetime(2024, 3, 31, 0, 30, tzinfo=timezone.utc),
    datetime(2038, 1, 19, 3, 14, 7, tzinfo=timezone.utc),
    datetime(2059, 7, 1, 22, 15, 30, tzinfo=timezone.utc),
]
TYPES = ("timestamp", "timestamp_ntz", "date")


def _shown(moment: datetime, type_: str, zone: str) -> str:
    """A moment as a column of a type has it; what a clock shows is that of the parts' zone."""
    local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if type_ == "date":
        return f"date '{local.date()}'"
    if type_ == "timestamp_ntz":
        return f"timestamp_ntz '{local}'"
    return f"timestamp '{moment.replace(tzinfo=None)}+00:00'"


def _expected(moment: datetime, type_: str, length: Length) -> int:
    if type_ == "timestamp":
        return length.part_of(moment)
    local = moment.astimezone(ZoneInfo(length.zone)).replace(tzinfo=timezone.utc)
    if type_ == "date":
        local = datetime(local.year, local.month, local.day, tzinfo=timezone.utc)
    return counted(SparkType.of(type_), length).part_of(local)


def _compared(length: Length, type_: str) -> Length:
    """The parts that rows of several parts are compared by: of instants those of UTC."""
    return replace(length, zone="UTC") if type_ == "timestamp" else length


def _check(query: Callable[[str], Sequence[Sequence[Any]]], types: Sequence[str]) -> None:
    cases = [(moment, type_, length) for moment in MOMENTS for type_ in types for length in LENGTHS]
    columns: list[exp.Expr] = []
    for at, (moment, type_, length) in enumerate(cases):
        column = exp.maybe_parse(f"CAST({_shown(moment, type_, length.zone)} AS {type_})", dialect="spark")
        columns.append(exp.alias_(number_of(column, SparkType.of(type_), length), f"n{at}"))
        of = _compared(length, type_)
        columns.append(exp.alias_(part_of(Scalar(column), SparkType.of(type_), of).ast(), f"p{at}"))
    (found,) = query(exp.select(*columns).sql(dialect="spark"))
    assert list(found)[::2] == [_expected(*case) for case in cases]
    assert list(found)[1::2] == [_expected(m, t, _compared(length, t)) for m, t, length in cases]

    parts = [(part, length) for length in LENGTHS for part in {length.part_of(m) for m in MOMENTS}]
    begins = [
        exp.alias_(
            exp.Anonymous(this="UNIX_SECONDS", expressions=[start_of(exp.Literal.number(part), length)]),
            f"s{at}",
        )
        for at, (part, length) in enumerate(parts)
    ]
    (found,) = query(exp.select(*begins).sql(dialect="spark"))
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    seconds = timedelta(seconds=1)
    assert list(found) == [(length.start_of(part) - epoch) // seconds for part, length in parts]


def _check_made_parts(query: Callable[[str], Sequence[Sequence[Any]]]) -> None:
    """Parts that SQL makes of ranges begin where Python says, and lie in the same directories."""
    for length in (found for found in LENGTHS if found.zone == "UTC"):
        numbers = sorted(length.part_of(moment) + more for moment in MOMENTS for more in (-1, 0, 1))
        made = made_parts(length, Intervals.numbers(numbers)).subquery("made")
        seconds = exp.Anonymous(this="UNIX_SECONDS", expressions=[exp.column(PART_TIMESTAMP)])
        asked = exp.select(exp.column(PART), seconds, exp.column(PARTITION)).from_(made).order_by(PART)
        expected = [
            (n, int(length.start_of(n).timestamp()), f"v{period_of(length, n).isoformat()}")
            for n in sorted(set(numbers))
        ]
        assert [tuple(row) for row in query(asked.sql(dialect="spark"))] == expected


@pytest.mark.spark
def test_on_spark(spark: SparkSession) -> None:
    _check(lambda sql: spark.sql(sql).collect(), TYPES)
    _check_made_parts(lambda sql: spark.sql(sql).collect())


def test_on_duckdb() -> None:
    with closing(DuckDbEngine(tiny=True)) as engine:
        _check(engine.query, TYPES)
        _check_made_parts(engine.query)
