"""Which column partitions a state, and how its values are written as literals."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.plan.plan import Partitioning
from fivm_dbt.refresh.writes import literal
from fivm_dbt.spark.reads import in_partitions
from fixtures.models import plan_of, relation

TABLE = relation("raw.f", "k int, g string, d date, ts timestamp, v decimal(10,2)")


def _partitioning(sql: str, **meta: object) -> Partitioning:
    return plan_of(sql, [TABLE], meta).root.partitioning


def _shown(sql: str, **meta: object) -> tuple[str, str | None, str]:
    found = _partitioning(sql, **meta)
    return found.kind, found.expression.sql if found.expression is not None else None, found.type.text


BY_DATE = "select g, d, count(*) as c from raw.f group by g, d"
BY_HOUR = "select date_trunc('hour', ts) as h, count(*) as c from raw.f group by 1"
BY_TIME = "select ts, count(*) as c from raw.f group by ts"


@pytest.mark.parametrize(
    ("sql", "meta", "expected"),
    [
        (BY_DATE, {}, ("time", "TRUNC(d, 'MM')", "date")),
        (BY_DATE, {"batch_size": "year"}, ("time", "TRUNC(d, 'YEAR')", "date")),
        (BY_DATE, {"batch_size": "day"}, ("time", "d", "date")),
        (BY_DATE, {"batch_size": "hour"}, ("time", "d", "date")),
        (BY_HOUR, {}, ("time", "TRUNC(h, 'MM')", "date")),
        (BY_HOUR, {"batch_size": "day"}, ("time", "CAST(h AS DATE)", "date")),
        (BY_HOUR, {"batch_size": "hour"}, ("time", "DATE_TRUNC('HOUR', h)", "timestamp")),
        (BY_TIME, {}, ("bucket", None, "int")),
        ("select k, d as day from raw.f", {}, ("time", "TRUNC(day, 'MM')", "date")),
        ("select cast(ts as date) as d, sum(v) as s from raw.f group by 1", {}, ("time", "TRUNC(d, 'MM')", "date")),
        ("select g, count(*) as c from raw.f group by g", {}, ("bucket", None, "int")),
        ("select count(*) as c from raw.f", {}, ("bucket", None, "int")),
        (BY_DATE, {"fivm_partition_by": "g"}, ("value", "'v' || g", "string")),
        (BY_DATE, {"fivm_partition_by": "G"}, ("value", "'v' || g", "string")),
        (BY_DATE, {"fivm_partition_by": "year(d)"}, ("value", "YEAR(d)", "int")),
        (BY_DATE, {"fivm_partition_by": "d"}, ("value", "d", "date")),
        (
            "select upper(g) as loud, count(*) as c from raw.f group by upper(g)",
            {"fivm_partition_by": "loud"},
            ("value", "'v' || loud", "string"),
        ),
    ],
)  # fmt: skip
def test_choice(sql: str, meta: dict[str, object], expected: tuple[str, str | None, str]) -> None:
    assert _shown(sql, **meta) == expected


def test_the_first_date_key_counts() -> None:
    sql = "select d, cast(ts as date) as e, count(*) as c from raw.f group by 1, 2"
    assert _shown(sql)[1] == "TRUNC(d, 'MM')"
    assert _partitioning(sql).reason == "month of key d"


def test_buckets() -> None:
    sql = "select g, count(*) as c from raw.f group by g"
    assert _partitioning(sql).buckets is None
    assert _partitioning(sql, fivm_buckets=16).buckets == 16
    assert _partitioning("select count(*) as c from raw.f", fivm_buckets=16).buckets == 1
    assert _partitioning("select count(*) as c from raw.f").reason == "one row, one bucket"


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("x", "x is not in the output (expected one of g, d)"),
        ("k", "k is not in the output"),
        ("c", "c is not a key of the result"),
        ("year(c)", "c is not a key of the result"),
        ("rand()", "RAND() gives another value"),
        ("sum(d)", "the aggregate sum is not allowed here"),
        ("d +", "d +"),
        ("my_function(d)", "the type of my_function(d) is unknown"),
    ],
)
def test_wrong_columns(by: str, message: str) -> None:
    with pytest.raises(FivmError, match="fivm_partition_by") as caught:
        plan_of(BY_DATE, [TABLE], {"fivm_partition_by": by})
    assert caught.value.code.number == "FIVM202"
    assert message in caught.value.message


def test_an_expression_over_a_key_is_no_key() -> None:
    with pytest.raises(FivmError, match="loud is not a key"):
        plan_of(
            "select upper(g) as loud, count(*) as c from raw.f group by g",
            [TABLE],
            {"fivm_partition_by": "loud"},
        )


def test_a_global_aggregate_has_nothing_to_partition_by() -> None:
    with pytest.raises(FivmError, match="there is no key"):
        plan_of("select count(*) as c from raw.f", [TABLE], {"fivm_partition_by": "c"})


@pytest.mark.parametrize(
    ("value", "type_", "sql"),
    [
        (None, "date", "NULL"),
        (datetime.date(2024, 5, 1), "date", "CAST('2024-05-01' AS DATE)"),
        (datetime.datetime(2024, 5, 1), "date", "CAST('2024-05-01' AS DATE)"),
        (datetime.datetime(2024, 5, 1, 13), "timestamp", "CAST('2024-05-01 13:00:00' AS TIMESTAMP)"),
        (3, "int", "3"),
        (-3, "int", "-3"),
        (Decimal(7), "bigint", "7"),
        (Decimal("2.50"), "decimal(10,2)", "CAST('2.50' AS DECIMAL(10, 2))"),
        (True, "boolean", "TRUE"),
        ("it's", "string", "'it\\'s'"),
        ("a\\b", "string", "'a\\\\b'"),
        (1.5, "double", "CAST('1.5' AS DOUBLE)"),
    ],
)
def test_literals(value: object, type_: str, sql: str) -> None:
    assert literal(value, SparkType.of(type_)).sql(dialect="spark") == sql


def test_null_is_its_own_partition() -> None:
    date = SparkType.of("date")
    values = [literal(None, date), literal(datetime.date(2024, 5, 1), date)]
    text = in_partitions("target", values).sql(dialect="spark")
    column = "target.__fivm_partition"
    assert text == f"({column} IN (CAST('2024-05-01' AS DATE)) OR {column} IS NULL)"
    assert in_partitions("target", values[:1]).sql(dialect="spark") == f"{column} IS NULL"
    assert (
        in_partitions("target", values[1:]).sql(dialect="spark")
        == f"{column} IN (CAST('2024-05-01' AS DATE))"
    )
