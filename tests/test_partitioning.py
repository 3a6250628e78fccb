"""Which column partitions a state, and how its values are written as text."""

from __future__ import annotations

import datetime

import pytest
import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import SparkType, TableStatistics
from fivm_dbt.catalog.statistics import days_of
from fivm_dbt.catalog.types import DATE, TIMESTAMP
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.state import Partitioning
from fivm_dbt.spark.partition_text import partition_text, partition_time
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
        (BY_DATE, {"fivm_partition_by": "g"}, ("value", "g", "string")),
        (BY_DATE, {"fivm_partition_by": "G"}, ("value", "g", "string")),
        (BY_DATE, {"fivm_partition_by": "year(d)"}, ("value", "YEAR(d)", "int")),
        (BY_DATE, {"fivm_partition_by": "d"}, ("value", "d", "date")),
        (
            "select upper(g) as loud, count(*) as c from raw.f group by upper(g)",
            {"fivm_partition_by": "loud"},
            ("value", "loud", "string"),
        ),
    ],
)  # fmt: skip
def test_choice(sql: str, meta: dict[str, object], expected: tuple[str, str | None, str]) -> None:
    assert _shown(sql, **meta) == expected


CALENDAR = relation("raw.c", "d date, week int")
BY_MONTH = "select trunc(d, 'MM') as m, g, max(v) as most from raw.f group by 1, 2"
OF_CALENDAR = "select c.d, f.k, count(*) as n from raw.c left join raw.f f on f.d = c.d group by 1, 2"
OF_GROUPS = """
    select trunc(d, 'MM') as m, max(c) as most
    from (select g, d, count(*) as c from raw.f group by g, d) group by 1
"""


def _measured(rows: int, **days: int) -> TableStatistics:
    """Of the tables: a calendar of 1,000 days."""
    distinct = {("raw.f", days_of(name) if name == "ts" else name): n for name, n in days.items()}
    return TableStatistics.of({"raw.f": rows, "raw.c": 1_000}, distinct | {("raw.c", "d"): 1_000})


def _periods(sql: str, measured: TableStatistics | None, **meta: object) -> list[str]:
    """Of what time the partitions of each view are."""
    plan = plan_of(sql, [TABLE, CALENDAR], meta, measured=measured)
    return [view.state.partitioning.reason.split(" ")[0] for view in plan.views]


@pytest.mark.parametrize(
    ("sql", "days"),
    [(BY_DATE, "d"), (BY_MONTH, "d"), (BY_HOUR, "ts"), (OF_CALENDAR, "d"), (OF_GROUPS, "d")],
    ids=["dates", "months", "hours", "an outer join", "views"],
)
def test_few_rows_a_month_are_kept_by_year(sql: str, days: str) -> None:
    """Of 666 rows a day there are fewer than 20,000 a month, of 667 more."""
    few, many = ({"rows": a_day * 1_000, days: 1_000} for a_day in (666, 667))
    assert set(_periods(sql, _measured(**few))) == {"year"}
    assert set(_periods(sql, _measured(**many))) == {"month"}
    assert set(_periods(sql, None)) == {"month"}
    assert set(_periods(sql, TableStatistics.of({"raw.f": 1, "raw.c": 1}))) == {"month"}, (
        "no days are counted"
    )


def test_what_is_measured_for_it() -> None:
    day = {"raw.f": {"d"}}
    for sql, expected in ((BY_DATE, day), (OF_GROUPS, day), (BY_HOUR, {"raw.f": {days_of("ts")}})):
        measurable = plan_of(sql, [TABLE, CALENDAR]).measurable
        assert {name: set(columns) for name, columns in measurable} == expected


@pytest.mark.parametrize(
    "meta",
    [{"batch_size": "month"}, {"fivm_partition_by": "d"}, {"fivm_strategy": "first_order"}],
    ids=["batch_size", "fivm_partition_by", "another strategy"],
)
def test_a_given_length_stays(meta: dict[str, object]) -> None:
    assert "year" not in _periods(BY_DATE, _measured(rows=10, d=10), **meta)
    assert plan_of(BY_DATE, [TABLE], meta).measurable == ()


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
    ("value", "type_", "text"),
    [
        ("CAST(NULL AS DATE)", "date", "n"),
        ("DATE'2024-05-01'", "date", "v2024-05-01"),
        ("CAST(7 AS BIGINT)", "bigint", "v10000000000000000007"),
        ("CAST(-1 AS BIGINT)", "bigint", "v09999999999999999998"),
        ("CAST(-9223372036854775808 AS BIGINT)", "bigint", "v00776627963145224191"),
        ("TRUE", "boolean", "vtrue"),
        ("CAST('2.50' AS DECIMAL(10, 2))", "decimal(10,2)", "v2.50"),
        ("'it''s'", "string", "vit's"),
        ("''", "string", "v"),
        ("TIMESTAMP'1970-01-01 00:00:01'", "timestamp", "v10000000000001000000"),
    ],
)
def test_partitions_as_text(value: str, type_: str, text: str) -> None:
    engine = DuckDbEngine()
    ast = sqlglot.parse_one(value, dialect="duckdb")
    query = exp.select(exp.alias_(partition_text(ast, SparkType.of(type_)), "text"))
    assert engine.query(query.sql(dialect="spark")) == [(text,)]


def test_integers_and_days_sort_as_their_texts_do() -> None:
    engine = DuckDbEngine()
    numbers = [-(2**63), -10, -9, -1, 0, 1, 9, 10, 2**63 - 1]
    for values, type_ in (
        ([f"CAST({n} AS BIGINT)" for n in numbers], "bigint"),
        ([f"DATE'{d}'" for d in ("0001-01-01", "0999-12-31", "1970-01-01", "9999-12-31")], "date"),
    ):
        texts = [partition_text(exp.Var(this=v), SparkType.of(type_)).sql(dialect="spark") for v in values]
        (found,) = engine.query("SELECT " + ", ".join(f"{t} AS t{n}" for n, t in enumerate(texts)))
        assert list(found) == sorted(map(str, found)) and len(set(found)) == len(values)


def test_the_time_of_a_partition() -> None:
    assert partition_time("n", DATE) is None and partition_time("w10000000000", DATE) is None
    assert partition_time("v2024-02-29", DATE) == datetime.date(2024, 2, 29)
    first = datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc)
    assert partition_time("v09999999999998999999", TIMESTAMP) == first
